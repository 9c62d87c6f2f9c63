package server

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// freeMemory returns how much memory may still be used: what the machine has, or what is left of a limit of this process's cgroup (v2).
func freeMemory() (bytes uint64, known bool) {
	free, known := available("/proc/meminfo")
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return free, known
	}
	path, found := strings.CutPrefix(strings.TrimSpace(string(own)), "0::")
	if !found {
		return free, known
	}
	left, limited := leftOf("/sys/fs/cgroup", path)
	switch {
	case !limited:
		return free, known
	case !known:
		return left, true
	}
	return min(free, left), true
}

// leftOf returns what is left of the narrowest limit of a cgroup and those around it.
func leftOf(root, path string) (left uint64, limited bool) {
	for at := filepath.Clean("/" + path); ; at = filepath.Dir(at) {
		most, isLimited := number(filepath.Join(root, at, "memory.max"))
		used, counted := number(filepath.Join(root, at, "memory.current"))
		if here := most - min(used, most); isLimited && counted && (!limited || here < left) {
			left, limited = here, true
		}
		if at == "/" {
			return left, limited
		}
	}
}

// available reads MemAvailable.
func available(path string) (bytes uint64, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

func number(path string) (n uint64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
