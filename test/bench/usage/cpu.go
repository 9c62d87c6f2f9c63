// Package usage reads from /proc what a server takes of the machine, with all processes that it
// started.
package usage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks of the kernel's clock in a second, as /proc counts CPU on Linux.
const ticks = 100

// CPU returns the seconds of CPU that a process and what it started have used.
func CPU(pid int) (seconds float64) {
	for _, p := range Tree(pid) {
		seconds += Own(p)
	}
	return seconds
}

// Own returns the seconds of CPU that a process alone has used.
func Own(pid int) (seconds float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// Behind the name, which may have spaces: state is field 3, utime and stime are 14 and 15.
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseFloat(f, 64)
		seconds += n / ticks
	}
	return seconds
}
