package reliability

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// rogue and breaker are the plugins that misbehave: here, and in test/misbehave.
var rogue, breaker string

func buildRogues() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "coxswain-rogues-")
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	rogue, breaker = filepath.Join(dir, "rogue"), filepath.Join(dir, "breaker")
	for binary, folder := range map[string]string{rogue: "./rogue", breaker: "../misbehave/rogue"} {
		if out, err := exec.Command("go", "build", "-o", binary, folder).CombinedOutput(); err != nil {
			return remove, fmt.Errorf("go build %s: %w\n%s", folder, err, out)
		}
	}
	return remove, nil
}
