package host

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

var pssPattern = regexp.MustCompile(`(?m)^Pss:\s+([0-9]+) kB$`)

// pss is the proportional set size of a process in bytes, or 0 where it is unknown.
func pss(pid int) uint64 {
	if pid <= 0 {
		return 0
	}
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	m := pssPattern.FindSubmatch(rollup)
	if m == nil {
		return 0
	}
	kB, err := strconv.ParseUint(string(m[1]), 10, 64)
	if err != nil {
		return 0
	}
	return kB << 10
}
