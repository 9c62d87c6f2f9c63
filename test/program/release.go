package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release is a version, and the commit that it was made from.
type Release struct{ Version, Commit string }

// LastRelease is the newest one of docs/releases.txt. root is the repository's.
func LastRelease(root string) (r Release, err error) {
	text, err := os.ReadFile(filepath.Join(root, "docs/releases.txt"))
	if err != nil {
		return r, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) != 2 {
		return r, fmt.Errorf("docs/releases.txt: %q is no version and commit", lines[len(lines)-1])
	}
	return Release{fields[0], fields[1]}, nil
}

// Build unpacks the release's source into a folder, and builds packages of it. It returns the
// folder with their programs.
func (r Release) Build(root, dir string, packages ...string) (string, error) {
	const script = `set -e
git -C "$1" archive "$2" | tar -x -C "$3"
cd "$3"
mkdir built
go build -buildvcs=false -trimpath -ldflags "-X main.version=$4" -o built/ "${@:5}"`
	cmd := exec.Command("bash", append([]string{"-o", "pipefail", "-c", script, "build", root, r.Commit, dir, r.Version}, packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s can't be built of its commit, %s: %w\n%s", r.Version, r.Commit, err, out)
	}
	return filepath.Join(dir, "built"), nil
}
