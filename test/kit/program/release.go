package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Release is a version, and the commit that it was made from.
type Release struct{ Version, Commit string }

// LastRelease is the newest one of docs/releases.txt. root is the repository's.
func LastRelease(root string) (r Release, err error) {
	all, err := Releases(root, 1)
	if err != nil {
		return r, err
	}
	return all[0], nil
}

// Releases are the last ones that docs/releases.txt names, so many or as many as there are, the
// newest first.
func Releases(root string, most int) ([]Release, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs/releases.txt"))
	if err != nil {
		return nil, err
	}
	return releases(string(text), most)
}

func releases(text string, most int) (all []Release, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("docs/releases.txt: %q is no version and commit", line)
		}
		all = append(all, Release{fields[0], fields[1]})
	}
	if len(all) == 0 {
		return nil, errors.New("docs/releases.txt names no release")
	}
	slices.Reverse(all)
	return all[:min(most, len(all))], nil
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
