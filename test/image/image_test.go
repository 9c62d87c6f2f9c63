// Package image tries the container image: how it is made of the real program, and that it runs
// from its own files alone.
package image_test

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Plain(&binary, m.Run) }

const (
	source = "../../deploy/image"
	// most bytes that the image may have as it is pulled, in what it is unpacked.
	mostPulled, mostUnpacked = 50 << 20, 110 << 20
	// mostProgram is how many bytes the program may have.
	mostProgram = 102 << 20
)

// TestSize: a module that makes the program much larger is noticed. What a release leaves out, the
// symbols, doesn't count.
func TestSize(t *testing.T) {
	t.Parallel()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var size uint64
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_SYMTAB && s.Name != ".strtab" && !strings.HasPrefix(s.Name, ".debug") {
			size += s.FileSize
		}
	}
	t.Logf("it has %d MiB", size>>20)
	if size > mostProgram || size < 10<<20 {
		t.Errorf("the program has %d bytes, and may have %d", size, mostProgram)
	}
}

// TestMaker: what makes the image is a module of its own, whose tests are these.
func TestMaker(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %q: %v\n%s", args, err, out)
		}
	}
}

// TestTarget: `make image` gives the maker the program of each platform, where it was built before.
func TestTarget(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("make", "--dry-run", "-C", "../..", "image").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, a := range platforms {
		if file := "dist/linux-" + a + "/coxswain"; !strings.Contains(string(out), "--program linux/"+a+"="+file+" ") {
			t.Errorf("the maker is not told of %s:\n%s", file, out)
		}
	}
	if n := strings.Count(string(out), "--program "); n != len(platforms) {
		t.Errorf("it is told of %d programs", n)
	}
}

// platforms are those that images are made for.
var platforms = []string{"amd64", "arm64"}

// TestRuns: built in two places the image has one digest, it is small enough, a registry takes it
// and gives it back, and it runs where there is nothing but its files.
func TestRuns(t *testing.T) {
	t.Parallel()
	need.All(t)
	tool := maker(t)
	layout := filepath.Join(t.TempDir(), "layout")
	digest := imaged(t, tool, built(t, "../.."), "--to", layout)
	t.Run("registry", func(t *testing.T) { pushed(t, tool, built(t, copied(t)), digest) })
	for i, m := range read(t, filepath.Join(layout, "index.json")).Manifests {
		root := t.TempDir()
		if pulled, unpacked := unpack(t, layout, m.Digest, root); pulled > mostPulled || unpacked > mostUnpacked {
			t.Errorf("%s: it has %d bytes, %d of them unpacked", platforms[i], pulled, unpacked)
		} else {
			t.Logf("%s: it has %d MB, %d MB unpacked", platforms[i], pulled/1e6, unpacked/1e6)
		}
		if platforms[i] == runtime.GOARCH {
			runs(t, root)
		}
	}
}

// runs runs the program as the image says, in a folder with the image's files as its root.
func runs(t *testing.T, root string) {
	t.Helper()
	if os.Getuid() != 0 {
		need.Missing(t, "a root of its own; run as root")
	}
	for _, name := range []string{"coxswain", "pilot-discovery"} {
		run := exec.Command("/usr/local/bin/"+name, "version")
		run.Dir, run.Env = "/", []string{"PATH=/usr/local/bin"}
		run.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "v9.9.9") {
			t.Errorf("%s says %s: %v", name, out, err)
		}
	}
}

// maker builds what makes images.
func maker(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "image")
	if out, err := exec.Command("go", "build", "-C", source, "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tool
}

// built builds the programs as `make image` does, and returns what the maker is told of them.
func built(t *testing.T, dir string) (args []string) {
	t.Helper()
	for _, a := range platforms {
		to := filepath.Join(t.TempDir(), "coxswain")
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=v9.9.9", "-o", to, "./cmd/coxswain")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+a)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		args = append(args, "--program", "linux/"+a+"="+to)
	}
	return args
}

// copied is a copy of the source.
func copied(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// imaged runs the maker, and returns the digest that it prints.
func imaged(t *testing.T, tool string, programs []string, to ...string) string {
	t.Helper()
	args := slices.Concat(programs, []string{"--version", "v9.9.9", "--created", "1700000000", "--zones", zones(t)}, to)
	out, err := exec.Command(tool, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// zones is the file with Go's time zones.
func zones(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip")
}

// described is what says of a blob in a layout. Source: the OCI's image specification.
type described struct {
	Digest            string
	Size              int64
	Manifests, Layers []described
}

// unpack unpacks an image of a layout. The sizes are its layers', packed and unpacked.
func unpack(t *testing.T, layout, digest, to string) (pulled, unpacked int64) {
	t.Helper()
	manifest := read(t, blob(layout, digest))
	if len(manifest.Layers) != 2 {
		t.Fatalf("it is %+v", manifest)
	}
	for _, l := range manifest.Layers {
		pulled += l.Size
		f, err := os.Open(blob(layout, l.Digest))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			unpacked += h.Size
			place(t, filepath.Join(to, h.Name), h, r)
		}
		_ = f.Close()
	}
	return pulled, unpacked
}

func place(t *testing.T, path string, h *tar.Header, from io.Reader) {
	t.Helper()
	mode := h.FileInfo().Mode().Perm()
	if h.Typeflag == tar.TypeDir {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		return
	}
	if h.Typeflag == tar.TypeSymlink {
		if err := os.Symlink(h.Linkname, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func blob(layout, digest string) string {
	return filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))
}

func read(t *testing.T, path string) (d described) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}
