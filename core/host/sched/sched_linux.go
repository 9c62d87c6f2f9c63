package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Read returns the times of a process; false where the kernel doesn't say them.
func Read(pid int) (Times, bool) {
	if pid <= 0 {
		return Times{}, false
	}
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	var t Times
	read := false
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
			continue
		}
		t.Ran, t.Waited, read = t.Ran+time.Duration(ran), t.Waited+time.Duration(waited), true
	}
	return t, read
}
