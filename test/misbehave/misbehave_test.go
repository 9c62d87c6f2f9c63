package misbehave

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "rogue" {
		run(os.Args[2])
		return
	}
	binary, remove, err := mesh.Build("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = binary
	code := m.Run()
	remove()
	os.Exit(code)
}

// entry declares a rogue, and what must be seen of it.
type entry struct {
	name, kind string
	// keys of the entry besides what all have.
	keys string
	// failure must come up as its last error and, with the entry's place, in the log; empty: it does not fail.
	failure string
	// said must be in the log.
	said string
}

func entries() []entry {
	generator := func(name string) string { return "select: {metadata: {ROGUE: " + name + "}}" }
	return []entry{
		{"exits", "registry", "", "ended (exit status 3) before it shook hands", "the sky falls"},
		{"garbage", "registry", "limits: {start: 2s}", "its first line of standard output is no handshake", ""},
		{"handshake", "registry", "limits: {start: 2s}", "version", ""},
		{"mute", "registry", "limits: {start: 1s}", "no handshake within 1s (limits.start)", ""},
		{"never-ready", "registry", "limits: {configure: 1s}", "it has not said Ready within 1s (limits.configure)", ""},
		{"version", "registry", "", "it chose version 99 of the contract, this core speaks 1", ""},
		{"garbage-frames", "registry", "", "can't be decoded", ""},
		{"half-frame", "registry", "", "can't be decoded", ""},
		{"large-frame", "registry", "", "message is larger than 1 MiB", ""},
		{"free-flood", "registry", "", "", ""},
		{"log-flood", "registry", "", "", "lines of a plugin were left out: it logs too much"},
		{"row-flood", "registry", "", "", ""},
		{"undeclared", "registry", "", "which its Ready doesn't declare", ""},
		{"endless-rows", "registry", "limits: {rows: 1000}", "it published more than 1000 rows (limits.rows)", ""},
		{"rubbish-rows", "registry", "", "", ""},
		{"never-synced", "registry", "limits: {sync: 2s}", "its first full list is not in within 2s (limits.sync)", ""},
		{"ignores-drain", "registry", "limits: {stop: 1s}", "", ""},
		{"hungry", "registry", "limits: {memory: 128Mi}", "more than it may (limits.memory, 128Mi)", ""},
		{"closes", "registry", "", "ended", ""},
		{"loops", "config", "limits: {revision: 2s}", "it took longer than limits.revision, 2s", ""},
		{"panics", "config", "", "", ""},
		{"undeclared-type", "generator", generator("undeclared-type"), "which its Ready doesn't offer", ""},
		{"undecodable", "generator", generator("undecodable"), "", "a resource was refused; what there was before stays"},
		{"wanted-unknown", "generator", generator("wanted-unknown"), "it answered want 999, which was never asked or is answered already", ""},
		{"wanted-twice", "generator", generator("wanted-twice"), "which was never asked or is answered already", ""},
		{"patches", "patch", generator("undecodable") + ", onFailure: skip, limits: {call: 1s}", "", "there was no answer in time (limits.call)"},
		{"callers", "authenticator", "", "", ""},
	}
}

// plugins writes plugins.yaml: all rogues, then the default set. Rogues come first, where they have the most to say. They run at the lowest priority,
// so that a small machine can stand them all at once.
func plugins(t *testing.T) (file string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("plugins:\n")
	for _, e := range entries() {
		keys := e.keys
		if keys != "" {
			keys = ", " + keys
		}
		fmt.Fprintf(&b, "  - {name: %s, kind: %s, process: {command: nice, args: [\"-n\", \"19\", %q, rogue, %s], tls: \"off\"}, optional: true, insecure: true%s}\n",
			e.name, e.kind, exe, e.name, keys)
	}
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, good, _ := bytes.Cut(set, []byte("plugins:\n"))
	b.Write(good)
	file = filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMisbehaviour runs them all at once.
func TestMisbehaviour(t *testing.T) {
	envoy.Binary(t) // or skip
	w := newWorld(t)
	ready := w.watchReady()
	memory := w.watchMemory()
	w.connect(t)
	w.seen(t)
	w.edits(t)
	w.undecodable(t)
	if failed := ready(); len(failed) > 0 {
		t.Errorf("not ready %d times: %v", len(failed), failed[0])
	}
	most := memory()
	t.Logf("the core had at most %d MiB", most>>20)
	if most > 512<<20 {
		t.Errorf("the core had %d MiB", most>>20)
	}
	asked, failed := w.traffic.Stop()
	t.Logf("%d requests, %d failed", asked, len(failed))
	if asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests %d failed: %v", asked, len(failed), failed[:min(3, len(failed))])
	}
	for _, line := range w.envoy.Unhappy(t) {
		t.Error(line)
	}
	w.stop(t)
}

// seen waits until each rogue was found out, in words that lead to its line.
func (w *world) seen(t *testing.T) {
	open := entries()
	failures := map[string]string{}
	wait.For(t, "each rogue is found out", func() error {
		now := w.plane.Plugins(t)
		for name, p := range now {
			if p.LastError != "" {
				failures[name] = p.LastError
			}
		}
		log := w.plane.Log()
		open = slices.DeleteFunc(open, func(e entry) bool { return w.found(e, now[e.name], failures[e.name], log) == nil })
		var left []string
		for _, e := range open {
			left = append(left, w.found(e, now[e.name], failures[e.name], log).Error())
		}
		if len(left) > 0 {
			return fmt.Errorf("%s", strings.Join(left, "\n"))
		}
		return nil
	})
	for _, e := range entries() {
		t.Logf("%-16s %q", e.name, firstLine(failures[e.name]))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// found says what is missing.
func (w *world) found(e entry, p admin.Plugin, failure, log string) error {
	at := fmt.Sprintf("plugins.yaml:%d:", w.line(e.name))
	switch {
	case !strings.Contains(p.At, at):
		return fmt.Errorf("%s: stands at %s, not %s", e.name, p.At, at)
	case e.failure == "" && (p.State != "serving" || p.Restarts > 0):
		return fmt.Errorf("%s: should serve: %+v", e.name, p)
	case !strings.Contains(failure, e.failure):
		return fmt.Errorf("%s: said %q", e.name, failure)
	case e.failure != "" && !logs(log, e.name, at, e.failure):
		return fmt.Errorf("%s: no line of the log has %s and its failure", e.name, at)
	case !logs(log, e.name, "", e.said):
		return fmt.Errorf("%s: the log lacks %q", e.name, e.said)
	}
	return nil
}

// logs reports whether a line of the log of a plugin has all words.
func logs(log, plugin string, words ...string) bool {
	name := regexp.MustCompile(`plugin["=:]+` + regexp.QuoteMeta(plugin) + `\b`)
	for line := range strings.Lines(log) {
		if name.MatchString(line) && !slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(line, s) }) {
			return true
		}
	}
	return false
}

// line is where a rogue stands in plugins.yaml.
func (w *world) line(name string) int {
	return 2 + slices.IndexFunc(entries(), func(e entry) bool { return e.name == name })
}

// edits: what is changed while they misbehave arrives, also when one of the rows kills a plugin.
func (w *world) edits(t *testing.T) {
	began := time.Now()
	w.configure(t, "b")
	w.answers(t, "b")
	t.Logf("an edit took %v", time.Since(began).Round(time.Millisecond))
	w.curse(t)
	wait.For(t, "the row that kills is withheld and named", func() error {
		p := w.plane.Plugins(t)["panics"]
		if !slices.Contains(p.Withheld, "networking.istio.io/VirtualService test/cursed") || p.State != "serving" || p.Rows != 1 {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	for _, words := range [][]string{
		{"dies over these rows", "VirtualService test/cursed"},
		{"I can't stand test/cursed"},
		{fmt.Sprintf("plugins.yaml:%d:", w.line("panics")), "its process ended by itself (exit status 2)"},
	} {
		if !logs(w.plane.Log(), "panics", words...) {
			t.Errorf("no line of the log has %q", words)
		}
	}
	w.configure(t, "a")
	w.answers(t, "a")
}

// undecodable: what is good of a bad generator's arrives, once.
func (w *world) undecodable(t *testing.T) {
	wait.For(t, "the good cluster has come", func() error {
		if got := w.streams["undecodable"].get(); !slices.Equal(got, []string{"good"}) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

// stop: the core ends well, in time, and nothing is left.
func (w *world) stop(t *testing.T) {
	for _, s := range w.streams {
		s.close()
	}
	began := time.Now()
	if code := w.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, w.plane.LastLines(20))
	}
	t.Logf("the end took %v", time.Since(began).Round(time.Millisecond))
	exe, _ := os.Executable()
	left, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range left {
		text, _ := os.ReadFile(file)
		if bytes.Contains(text, []byte(exe+"\x00rogue\x00")) || bytes.HasPrefix(text, []byte(program+"\x00plugin")) {
			t.Errorf("%s is left: %q", file, text)
		}
	}
	_ = filepath.WalkDir(w.tmp, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.Type()&os.ModeSocket != 0 {
			t.Errorf("a socket is left: %s", path)
		}
		return nil
	})
}

// watchReady asks for readiness until the result is asked for: each time that it was not ready.
func (w *world) watchReady() func() []error {
	var failed []error
	end := repeat(100*time.Millisecond, func() {
		if _, err := w.plane.Get("/ready"); err != nil {
			failed = append(failed, err)
		}
	})
	return func() []error { end(); return failed }
}

// watchMemory looks at the core until the result is asked for: the most memory that it had.
func (w *world) watchMemory() func() uint64 {
	var most uint64
	pss := regexp.MustCompile(`(?m)^Pss:\s+([0-9]+) kB`)
	end := repeat(200*time.Millisecond, func() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", w.plane.PID()))
		if m := pss.FindSubmatch(text); m != nil {
			kB, _ := strconv.ParseUint(string(m[1]), 10, 64)
			most = max(most, kB<<10)
		}
	})
	return func() uint64 { end(); return most }
}

// repeat does something again and again, until end is called.
func repeat(pause time.Duration, f func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			f()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
