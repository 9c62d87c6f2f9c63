//go:build !linux

package family

import (
	"context"
	"fmt"
	"os"
)

// Adopt does nothing: elsewhere orphans belong to the first process, and what a plugin started ends
// with its process group alone.
func Adopt() error { return nil }

// Collect does nothing here.
func (f *Family) Collect(context.Context) {}

type process struct {
	pid, parent int
	zombie      bool
}

func ownPID() int              { return os.Getpid() }
func processes() []process     { return nil }
func own() []process           { return nil }
func (p process) mark() string { return "" }
func (p process) kill() bool   { return false }
func (p process) here() bool   { return false }
func collect(int)              {}

// Lives reports whether the core of a name, PID-START, still runs.
func Lives(string) bool { return true }
func descends(int) bool { return false }

// Self names this process.
func Self() string { return fmt.Sprintf("%d-0", os.Getpid()) }
