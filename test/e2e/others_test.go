package e2e

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// anotherUser is one who has nothing: nobody's id and group.
const anotherUser = 65534

// asAnother calls a func as another user, in whose place this thread acts on files and sockets from
// then on: it ends with the call.
func asAnother(do func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that nobody else gets this thread
		_, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		if no != 0 {
			ended <- no
			return
		}
		if err := errors.Join(unix.Setfsgid(anotherUser), unix.Setfsuid(anotherUser)); err != nil {
			ended <- err
			return
		}
		ended <- do()
	}()
	return <-ended
}

// TestOtherUsers: another user of the machine connects neither to the admin socket nor to those of
// plugins, and reads neither the audit log nor the state, though he may enter the folders that they
// are in as far as their administrator made them.
func TestOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		need.Impossible(t, "only root can be another user")
	}
	run, dir := mesh.RuntimeDir(t), t.TempDir()
	for _, d := range []string{run, dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open, config := filepath.Join(dir, "open"), t.TempDir()
	if err := os.WriteFile(open, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(run, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Chmod(l.Addr().String(), 0o777); err != nil {
		t.Fatal(err)
	}
	connects := func(path string) error {
		return asAnother(func() error {
			c, err := net.Dial("unix", path)
			if err == nil {
				err = c.Close()
			}
			return err
		})
	}
	reads := func(path string) error {
		return asAnother(func() error { _, err := os.ReadFile(path); return err })
	}
	if err := errors.Join(connects(l.Addr().String()), reads(open)); err != nil {
		t.Fatalf("what is for all is refused: %v", err)
	}

	p := mesh.Start(t, program, config, "--auditLog", filepath.Join(dir, "audit.log"), "--stateDir", filepath.Join(dir, "state"))
	p.Ready(t)
	admin, plugins, files := 0, 0, 0
	for _, root := range []string{filepath.Join(run, "coxswain"), filepath.Join(dir, "audit.log"), filepath.Join(dir, "state")} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			try := reads
			switch {
			case errors.Is(err, fs.ErrNotExist): // it went meanwhile
				return nil
			case err != nil || e.IsDir():
				return err
			case e.Type()&fs.ModeSocket == 0:
				files++
			case strings.Contains(path, "/plugin"):
				plugins, try = plugins+1, connects
			default:
				admin, try = admin+1, connects
			}
			if err := try(path); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: another user is told: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if admin < 1 || plugins < 3 || files < 2 {
		t.Errorf("there are %d sockets of the core, %d of plugins, and %d files", admin, plugins, files)
	}
}
