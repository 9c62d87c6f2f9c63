package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// stateful is a control plane with a directory of state, on a configuration of ServiceEntries.
type stateful struct {
	operator
	plane          *mesh.Plane
	config, state  string
	proxy          *proxy
	edits          int
	oldest, newest uint64
}

// newStateful starts one with some revisions, of which one is pinned.
func newStateful(t *testing.T, state string, args ...string) *stateful {
	t.Helper()
	s := &stateful{config: t.TempDir(), state: state}
	s.start(t, args...)
	s.proxy = newProxy(t, s.plane, "kept", nil)
	for range 4 {
		s.edit(t)
	}
	s.oldest = s.newest - 2
	s.says(fmt.Sprintf("pin %d --proxies namespace=nobody", s.newest), 0)
	return s
}

func (s *stateful) start(t *testing.T, args ...string) {
	s.plane = mesh.Start(t, program, s.config, append([]string{"--stateDir", s.state}, args...)...)
	s.plane.Ready(t)
	s.operator = operator{t, s.plane.HTTP}
}

// edit adds a service, which the proxy gets.
func (s *stateful) edit(t *testing.T) {
	t.Helper()
	s.edits++
	name := fmt.Sprintf("web%d", s.edits)
	place(t, filepath.Join(s.config, name+".yaml"), strings.ReplaceAll(heldService, "web", name))
	wait.For(t, name+" is there", func() error { return s.proxy.want("outbound|80||"+name+".example", true) })
	was := s.newest
	wait.For(t, "the history has it", func() error {
		if s.newest = s.operator.newest(); s.newest <= was {
			return errors.New("not yet")
		}
		return nil
	})
}

// answers runs commands, which must all end by themselves.
func (s *stateful) answers(t *testing.T) {
	t.Helper()
	for _, args := range []string{
		fmt.Sprintf("diff --from %d --to %d", s.oldest, s.newest), "history", "pin", fmt.Sprintf("pin %d --proxies namespace=other", s.newest),
		"unpin --proxies namespace=other", "proxy-status", "config", "history -o json",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline)
		cmd := exec.CommandContext(ctx, program, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "COXSWAIN_ADDR="+s.addr)
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("coxswain %s does not end", args)
		}
		// What is lost with the file can't be compared any more.
		if err != nil && !(strings.HasPrefix(args, "diff") && strings.Contains(string(out), "not kept any more")) {
			t.Errorf("coxswain %s: %v\n%s", args, err, out)
		}
		cancel()
	}
	if _, err := page.Get(s.plane.Monitoring, "/metrics"); err != nil {
		t.Error(err)
	}
}

// TestHistoryFileSpoilt: whatever becomes of the history's file while it is in use, commands
// answer, edits arrive, pins stay and are written down again, and the core ends when it is told to.
func TestHistoryFileSpoilt(t *testing.T) {
	t.Parallel()
	file := func(s *stateful) string { return filepath.Join(s.state, "history.db") }
	for _, c := range []struct {
		name string
		harm func(*stateful) error
		// mends: another file is made at once. Else after mend.
		mend func(*stateful) error
	}{
		{name: "cut to nothing", harm: func(s *stateful) error { return os.Truncate(file(s), 0) }},
		{name: "cut in half", harm: func(s *stateful) error { return os.Truncate(file(s), size(s, file(s))/2) }},
		{name: "cut by a page", harm: func(s *stateful) error { return os.Truncate(file(s), size(s, file(s))-4096) }},
		{name: "longer", harm: func(s *stateful) error { return os.Truncate(file(s), size(s, file(s))+5000) }},
		{name: "overwritten", harm: func(s *stateful) error {
			f, err := os.OpenFile(file(s), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte(strings.Repeat("not what was there before ", int(size(s, file(s)))/26)))
			return errors.Join(err, f.Close())
		}},
		{name: "removed", harm: func(s *stateful) error { return os.Remove(file(s)) }},
		{name: "another file", harm: func(s *stateful) error {
			return errors.Join(os.WriteFile(file(s)+".new", []byte("something else"), 0o600), os.Rename(file(s)+".new", file(s)))
		}},
		{name: "a directory", harm: func(s *stateful) error { return errors.Join(os.Remove(file(s)), os.Mkdir(file(s), 0o700)) }},
		{name: "directory removed", harm: func(s *stateful) error { return os.RemoveAll(s.state) }},
		{name: "directory is a file", harm: func(s *stateful) error {
			return errors.Join(os.RemoveAll(s.state), os.WriteFile(s.state, nil, 0o600))
		}, mend: func(s *stateful) error { return os.Remove(s.state) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStateful(t, filepath.Join(t.TempDir(), "state"))
			if err := c.harm(s); err != nil {
				t.Fatal(err)
			}
			s.answers(t)
			s.edit(t)
			s.answers(t)
			if c.mend != nil {
				s.says("pin", 0, "may not outlive a restart", s.state)
				s.says("history", 0, s.state)
				if err := c.mend(s); err != nil {
					t.Fatal(err)
				}
			}
			s.says(fmt.Sprintf("pin %d --proxies namespace=late", s.newest), 0, "namespace=late")
			s.written(t)
			if n := strings.Count(s.plane.Log(), "the history's file can't be used any more"); n != 1 {
				t.Errorf("it was said %d times", n)
			}
			if code := s.plane.Stop(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			s.start(t)
			s.says("pin", 0, "namespace=nobody", "namespace=late")
			s.says("history", 0, fmt.Sprint(s.newest))
		})
	}
}

func size(s *stateful, file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Size()
}
