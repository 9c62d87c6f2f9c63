package mesh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the program into a new directory, with the race detector where the test has it, and returns its path. remove deletes it.
func Build(root string) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "coxswain-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "coxswain")
	args := []string{"build", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/coxswain")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, remove, nil
}
