package misbehave

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test, with the race detector where the tests have it.
var program string

func TestMain(m *testing.M) {
	mesh.Main(&program, m.Run)
}

// carrier is how rogues are run.
type carrier struct {
	name string
	// program is the core's.
	program string
	// declare returns an entry's keys for a rogue.
	declare func(rogue string) string
	// start and of are in the command line of a rogue's process, died is what the core says if one
	// ends of a panic.
	start, of, died string
}

// entry declares a rogue, and what must be seen of it.
type entry struct {
	name, kind string
	// keys of the entry besides what all have.
	keys string
	// failure must come up as its last error and, with the entry's place, in the log; empty: it
	// does not fail.
	failure string
	// said must be in the log.
	said string
	// module has failure and said where the runner says them of a module; none says why there is no
	// such module.
	module *words
	none   string
}

// words are what is said of a module, and the keys of its entry where they differ.
type words struct{ failure, said, keys string }

// of returns the entry as it is for a carrier.
func (e entry) of(c *carrier) entry {
	if c.name == "module" && e.module != nil {
		e.failure, e.said, e.keys = e.module.failure, e.module.said, cmp.Or(e.module.keys, e.keys)
	}
	return e
}

// counted is why some rogues are processes only.
const counted = "the core counts what a module's runner hands on as it counts a process's, and each module costs a small machine much"

func entries(c *carrier) []entry {
	generator := func(name string) string { return "select: {metadata: {ROGUE: " + name + "}}" }
	all := []entry{
		{
			"exits", "registry", "", "ended (exit status 3) before it shook hands", "the sky falls",
			&words{"the module ended with status 3", "the sky falls", ""}, "",
		},
		{
			"garbage", "registry", "limits: {start: 2s}", "its first line of standard output is no handshake", "",
			&words{"to standard output; a frame has at most 1048576", "", ""}, "",
		},
		{"handshake", "registry", "limits: {start: 2s}", "version", "", nil, "a module's runner shakes hands"},
		{"mute", "registry", "limits: {start: 1s}", "no handshake within 1s (limits.start)", "", nil, "a module's runner shakes hands"},
		{"never-ready", "registry", "limits: {configure: 1s}", "it has not said Ready within 1s (limits.configure)", "", nil, ""},
		{"version", "registry", "", "it chose version 99 of the contract, this core speaks 1", "", nil, ""},
		{"garbage-frames", "registry", "", "can't be decoded", "", nil, ""},
		{"half-frame", "registry", "", "can't be decoded", "", nil, ""},
		{"large-frame", "registry", "", "message is larger than 1 MiB", "", &words{"it wrote a frame of 1048577 bytes to standard output", "", ""}, ""},
		{"free-flood", "registry", "", "", "", nil, ""},
		{"log-flood", "registry", "", "", "lines of a plugin were left out: it logs too much", nil, ""},
		{"row-flood", "registry", "", "", "", nil, ""},
		{"undeclared", "registry", "", "which its Ready doesn't declare", "", nil, ""},
		{"endless-rows", "registry", "limits: {rows: 1000}", "it published more than 1000 rows (limits.rows)", "", nil, ""},
		{"endless-bytes", "registry", "limits: {bytes: 64Ki}", "it published more than 65536 bytes of rows (limits.bytes)", "", nil, counted},
		{"long-row", "registry", "limits: {rowBytes: 64Ki}", "more than it may (limits.rowBytes, 65536)", "", nil, counted},
		{"long-message", "registry", "limits: {messageBytes: 128Ki}", "more than it may (limits.messageBytes, 131072)", "", nil, counted},
		{"rubbish-rows", "registry", "", "", "", nil, ""},
		{"never-synced", "registry", "limits: {sync: 2s}", "its first full list is not in within 2s (limits.sync)", "", nil, ""},
		{"ignores-drain", "registry", "limits: {stop: 1s}", "", "", nil, ""},
		{"hungry", "registry", "limits: {memory: 128Mi}", "more than it may (limits.memory, 128Mi)", "",
			&words{"it had used 64 of the 64 MiB of memory that it may have (wasm.memory)", "", "limits: {memory: 1Gi}"}, ""},
		{"closes", "registry", "", "ended", "", nil, ""},
		{"loops", "config", "limits: {revision: 2s}", "it took longer than limits.revision, 2s", "", nil, ""},
		{"panics", "config", "", "", "", nil, ""},
		{"undeclared-type", "generator", generator("undeclared-type"), "which its Ready doesn't offer", "", nil, ""},
		{"undecodable", "generator", generator("undecodable"), "", "a resource was refused; what there was before stays", nil, ""},
		{"wanted-unknown", "generator", generator("wanted-unknown"), "it answered want 999, which was never asked or is answered already", "", nil, ""},
		{"wanted-twice", "generator", generator("wanted-twice"), "which was never asked or is answered already", "", nil, ""},
		{"patches", "patch", generator("undecodable") + ", onFailure: skip, limits: {call: 1s}", "", "there was no answer in time (limits.call)",
			&words{"", "limits.call", ""}, ""},
		{"callers", "authenticator", "", "", "", nil, ""},
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return c.name == "module" && e.none != "" })
	for i, e := range all {
		all[i] = e.of(c)
	}
	return all
}

// process runs rogues at the lowest priority, so that a small machine can stand them all at once.
func process(t *testing.T) *carrier {
	t.Helper()
	file := build(t, filepath.Join(t.TempDir(), "rogue"))
	return &carrier{name: "process", program: program, start: file, died: "its process ended by itself (exit status 2)", declare: func(rogue string) string {
		return fmt.Sprintf("process: {command: nice, args: [\"-n\", \"19\", %q, %s], tls: \"off\"}", file, rogue)
	}}
}

// module runs them as modules of one text: each reads in its file's name which it is. The program
// has no race detector, which makes a module many times slower: the core is the same for processes,
// and the runner's own tests (core/host/wasm) look for its races.
func module(t *testing.T) *carrier {
	t.Helper()
	dir := t.TempDir()
	file := build(t, filepath.Join(dir, "rogue.wasm"), "GOOS=wasip1", "GOARCH=wasm")
	plain := mesh.PlainProgram(t)
	return &carrier{name: "module", program: plain, start: plain, of: dir, died: "the module ended with status 2", declare: func(rogue string) string {
		own := filepath.Join(dir, rogue+".wasm")
		if err := os.Link(file, own); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		return fmt.Sprintf("wasm: {path: %q, memory: 64Mi}", own)
	}}
}

func build(t *testing.T, file string, environ ...string) string {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./rogue")
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// plugins writes plugins.yaml: rogues, then the default set. Rogues come first, where they have the
// most to say.
func plugins(t *testing.T, c *carrier, rogues []entry) (file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("plugins:\n")
	for _, e := range rogues {
		keys := e.keys
		if keys != "" {
			keys = ", " + keys
		}
		fmt.Fprintf(&b, "  - {name: %s, kind: %s, %s, optional: true, insecure: true%s}\n", e.name, e.kind, c.declare(e.name), keys)
	}
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, good, _ := bytes.Cut(set, []byte("plugins:\n"))
	// When rogues die while something is edited, the edit is not to be held for what they took
	// away.
	b.Write(bytes.Replace(good, []byte("    builtin: config/file\n"), []byte("    builtin: config/file\n    onLoss: apply\n"), 1))
	file = filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// together is how many run at once: each of those that never rest wants a processor for itself.
const together = 10

// TestMisbehaviour runs them, some at once, over one carrier and then the other.
func TestMisbehaviour(t *testing.T) {
	envoy.Binary(t) // or skip
	for _, c := range []func(*testing.T) *carrier{process, module} {
		how := c(t)
		for i, rogues := range slices.Collect(slices.Chunk(entries(how), together)) {
			t.Run(how.name+strconv.Itoa(i+1), func(t *testing.T) { misbehave(t, how, rogues) })
		}
	}
}

// mostMemory is what the core may have with its plugins and ten rogues beside them. The race
// detector, under which it runs, takes several times as much as the program that users have: 460 to
// 521 MiB were measured. Without a bound of what rogues send it would be gigabytes.
const mostMemory = 704 << 20

func misbehave(t *testing.T, c *carrier, rogues []entry) {
	w := newWorld(t, c, rogues)
	ready := w.watchReady()
	memory := w.watchMemory()
	w.connect(t)
	w.seen(t)
	w.edits(t)
	if w.has("undecodable") {
		w.undecodable(t)
	}
	if failed := ready(); len(failed) > 0 {
		t.Errorf("not ready %d times: %v", len(failed), failed[0])
	}
	most := memory()
	t.Logf("the core had at most %d MiB", most>>20)
	if most > mostMemory {
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
	open := slices.Clone(w.rogues)
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
	w.counted(t)
	for _, e := range w.rogues {
		t.Logf("%-16s %q", e.name, firstLine(failures[e.name]))
	}
}

// counted: each limit that was crossed is in the metrics, under the plugin's name.
func (w *world) counted(t *testing.T) {
	text, err := page.Get(w.plane.Monitoring, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range w.rogues {
		limit := cmp.Or(named(e.failure), named(e.said))
		if line := fmt.Sprintf("coxswain_plugin_limits_crossed_total{limit=%q,plugin=%q} ", limit, e.name); limit != "" && !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// named is the limit that a text names; none: "".
func named(text string) string {
	of := regexp.MustCompile(`\blimits\.([a-zA-Z]+)|\b(wasm\.memory)`).FindStringSubmatch(text)
	if of == nil {
		return ""
	}
	return of[1] + of[2]
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
		return fmt.Errorf("%s: said %q, not %q; it is %+v, and its log:\n%s", e.name, failure, e.failure, p, lines(log, e.name))
	case e.failure != "" && !logs(log, e.name, at, e.failure):
		return fmt.Errorf("%s: no line of the log has %s and its failure", e.name, at)
	case !logs(log, e.name, "", e.said):
		return fmt.Errorf("%s: the log lacks %q", e.name, e.said)
	}
	return nil
}

// logs reports whether a line of the log of a plugin has all words.
func logs(log, plugin string, words ...string) bool {
	return slices.ContainsFunc(lines(log, plugin), func(line string) bool {
		return !slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(line, s) })
	})
}

// lines returns the lines of the log about a plugin.
func lines(log, plugin string) (all []string) {
	name := regexp.MustCompile(`plugin["=:]+` + regexp.QuoteMeta(plugin) + `\b`)
	for line := range strings.Lines(log) {
		if name.MatchString(line) {
			all = append(all, line)
		}
	}
	return all
}

// line is where a rogue stands in plugins.yaml.
func (w *world) line(name string) int { return 2 + w.index(name) }

func (w *world) index(name string) int {
	return slices.IndexFunc(w.rogues, func(e entry) bool { return e.name == name })
}

// has reports whether a rogue is among those that run.
func (w *world) has(name string) bool { return w.index(name) >= 0 }

// edits: what is changed while they misbehave arrives, also when one of the rows kills a plugin.
func (w *world) edits(t *testing.T) {
	began := time.Now()
	w.configure(t, "b")
	w.answers(t, "b")
	t.Logf("an edit took %v", time.Since(began).Round(time.Millisecond))
	if w.has("panics") {
		w.cursed(t)
	}
	w.configure(t, "a")
	w.answers(t, "a")
}

// cursed: a row that kills a plugin is found and withheld from it.
func (w *world) cursed(t *testing.T) {
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
		{fmt.Sprintf("plugins.yaml:%d:", w.line("panics")), w.carrier.died},
	} {
		if !logs(w.plane.Log(), "panics", words...) {
			t.Errorf("no line of the log has %q", words)
		}
	}
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
	stubborn := w.has("ignores-drain")
	if stubborn {
		wait.For(t, "the one that ignores Drain serves", func() error {
			if p := w.plane.Plugins(t)["ignores-drain"]; p.State != "serving" {
				return fmt.Errorf("%+v", p)
			}
			return nil
		})
	}
	core := fmt.Sprintf("%s=%d", sdkprocess.CoreEnv, w.plane.PID()) // in the environment of each plugin's process
	if held := w.plane.Plugins(t); !slices.ContainsFunc(slices.Collect(maps.Values(held)), func(p admin.Plugin) bool {
		return p.PID > 0 && strings.Contains(environment(fmt.Sprintf("/proc/%d", p.PID)), core)
	}) {
		t.Errorf("no process of a plugin has %s", core)
	}
	began := time.Now()
	if code := w.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, w.plane.LastLines(20))
	}
	if stubborn && !logs(w.plane.Log(), "ignores-drain", "(limits.stop)") {
		t.Errorf("the log does not say that ignores-drain had to be killed:\n%s", strings.Join(lines(w.plane.Log(), "ignores-drain"), ""))
	}
	t.Logf("the end took %v", time.Since(began).Round(time.Millisecond))
	left, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range left {
		text, _ := os.ReadFile(dir + "/cmdline")
		rogue := bytes.Contains(text, []byte(w.carrier.start)) && bytes.Contains(text, []byte(w.carrier.of))
		if rogue || slices.Contains(strings.Split(environment(dir), "\x00"), core) {
			t.Errorf("%s is left: %q", dir, text)
		}
	}
	_ = filepath.WalkDir(w.tmp, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.Type()&os.ModeSocket != 0 {
			t.Errorf("a socket is left: %s", path)
		}
		return nil
	})
}

// environment of a process, by its folder in /proc; "" of one that is gone.
func environment(dir string) string {
	text, _ := os.ReadFile(dir + "/environ")
	return string(text)
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
