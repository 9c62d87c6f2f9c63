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
	threads, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return Times{}, false
	}
	defer func() { _ = threads.Close() }()
	names, _ := threads.Readdirnames(-1)
	var t Times
	read := false
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(threads.Name(), name, "schedstat"))
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
