//go:build !linux

package cgroup

import "errors"

// Own finds nothing: control groups are Linux's.
func Own() (string, error) { return "", errors.New("control groups are Linux's") }
