package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"golang.org/x/sys/unix"
)

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TestSealedCopy: nobody who gets hold of the copy that is executed can change it, though files in
// /proc open it for writing.
func TestSealedCopy(t *testing.T) {
	path, text := filepath.Join(t.TempDir(), "program"), []byte("what was hashed")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	sealed, err := seal(path, manifest.Digest(digestOf(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	if err := os.WriteFile(path, []byte("something else"), 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", sealed.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for what, try := range map[string]func() error{
		"writing":   func() error { _, err := again.WriteAt([]byte("X"), 0); return err },
		"growing":   func() error { return again.Truncate(1000) },
		"shrinking": func() error { return again.Truncate(1) },
		"mapping": func() error {
			b, err := unix.Mmap(int(again.Fd()), 0, len(text), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil {
				_ = unix.Munmap(b)
			}
			return err
		},
		"sealing otherwise": func() error {
			_, err := unix.FcntlInt(again.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
			return err
		},
	} {
		if err := try(); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := io.ReadAll(io.NewSectionReader(sealed, 0, 1<<20)); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the copy says %q: %v", got, err)
	}
}

// TestPinnedFiles: a process doesn't start with another file than the one that is pinned.
func TestPinnedFiles(t *testing.T) {
	text := self(t)
	data := []byte("rows")
	set := func(sum string) string {
		return "plugins: [{name: a, kind: registry, sha256: " + digestOf(text) + ", process: {command: EXE, args: [plugin, registry/idle], " +
			"files: [{path: rows.txt, sha256: " + sum + "}]}}]"
	}
	for name, c := range map[string]struct{ sum, want string }{
		"another": {digestOf([]byte("other")), "rows.txt is not what plugins.yaml pins"},
		"pinned":  {digestOf(data), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := short(t)
			if err := os.WriteFile(filepath.Join(dir, "rows.txt"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			h, ended, _ := real(t, dir, set(c.sum))
			if c.want == "" {
				until(t, "it runs", func() bool { return h.Status()[0].PID != 0 })
				return
			}
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("it runs")
			}
		})
	}
}
