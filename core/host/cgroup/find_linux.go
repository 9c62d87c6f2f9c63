package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Own returns the directory of this process's control group (cgroups(7), proc_pid_mountinfo(5)).
func Own() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return find(string(groups), string(mounts))
}

// find reads which group of the second version a process is in, and where those are mounted.
func find(groups, mounts string) (string, error) {
	for line := range strings.Lines(groups) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for mount := range strings.Lines(mounts) {
			before, after, _ := strings.Cut(mount, " - ")
			fields := strings.Fields(before)
			if strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
				below, err := filepath.Rel(fields[3], path) // the mount's root may be a group itself
				if err != nil || strings.HasPrefix(below, "..") {
					continue
				}
				return filepath.Join(fields[4], below), nil
			}
		}
	}
	return "", errors.New("no cgroup v2 is mounted")
}
