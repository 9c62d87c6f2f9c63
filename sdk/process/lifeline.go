//go:build !wasip1

package process

import (
	"io"
	"os"
	"strconv"
)

// watchLifeline ends the process when the pipe that the core holds open ends: that is the one sign
// of its death that no signal, no crash and no operating system takes away.
func watchLifeline() {
	fd, err := strconv.Atoi(os.Getenv(LifelineEnv))
	if err != nil || fd < 3 {
		return
	}
	pipe := os.NewFile(uintptr(fd), "lifeline")
	if pipe == nil {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		os.Exit(1)
	}()
}
