package reliability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

const keepPromise = "what was served stays; it is held and asked"

// accidentTrials are slips of a hand, and what machines do.
func accidentTrials() []trial {
	all := []trial{
		{name: "rm -rf of the configuration", promise: keepPromise, do: func(w *world) {
			w.spoil(func() { _ = os.RemoveAll(w.dir) }, func() { _ = os.Mkdir(w.dir, 0o700) })
		}},
		{name: "rm of all its files", promise: keepPromise, do: func(w *world) { w.spoil(func() { w.eachFile(os.Remove) }) }},
		{name: "all its files cut to nothing", promise: keepPromise, do: func(w *world) {
			w.spoil(func() { w.eachFile(func(file string) error { return os.Truncate(file, 0) }) })
		}},
		{name: "all its files cut in half", promise: keepPromise, do: func(w *world) { w.spoil(func() { w.eachFile(halve) }) }},
		{name: "file cut to nothing", promise: keepPromise, do: func(w *world) {
			w.spoil(func() { _ = os.Truncate(filepath.Join(w.dir, "web.yaml"), 0) })
		}},
		{name: "disk full while saving", promise: keepPromise, small: true, do: diskFull},
		{name: "name that is no UTF-8", promise: "the good resource stays", do: func(w *world) {
			text, _ := os.ReadFile(filepath.Join(w.dir, "web.yaml"))
			w.spoil(func() { w.place("web.yaml", strings.Replace(string(text), "name: web,", "name: w\xffeb,", 1)) })
		}},
		{name: "directory renamed away", promise: keepPromise, do: func(w *world) {
			away := w.dir + "-away"
			w.spoil(func() { _ = os.Rename(w.dir, away) }, func() { _ = os.Rename(away, w.dir) })
		}},
		{name: "link to /proc in the directory", promise: "edits arrive", do: func(w *world) {
			if err := os.Symlink("/proc", filepath.Join(w.dir, "proc")); err != nil {
				w.t.Fatal(err)
			}
			w.under(func(context.Context, func()) { w.pass(200) })
		}},
		{name: "plugins.yaml cut at any byte", promise: keepPromise, do: func(w *world) { w.cut(24) }},
		{name: "plugins.yaml cut at few bytes", promise: keepPromise, do: func(w *world) { w.cut(4) }},
		{name: "plugins.yaml spoiled", promise: keepPromise, do: spoiledSet},
		{name: "directory written to often", promise: "plugins.yaml is followed all the same", do: busyDirectory},
		{name: "runtime directory removed", promise: "plugins start again, commands find the core", restarts: []string{"reg"}, do: runtimeRemoved},
		{name: "program replaced", promise: "plugins start again as the version that runs", own: true, restarts: []string{"reg"}, do: func(w *world) {
			w.upgrade(func() { w.replace(w.program, "#!/bin/sh\necho I am another version >&2\nexit 1\n") })
		}},
		{name: "program removed", promise: "plugins start again as the version that runs", own: true, restarts: []string{"reg"}, do: func(w *world) {
			w.upgrade(func() { _ = os.Remove(w.program) })
		}},
		{name: "SIGHUP", promise: "it reads its files anew and goes on", do: hangup},
		{name: "few descriptors", promise: "plugins are started all the same", few: true, restarts: []string{"reg"}, do: fewDescriptors},
	}
	for _, name := range []string{"files", "serviceentry", "reg", "istio", "header"} {
		all = append(all,
			trial{name: "entry lost: " + name, promise: keepPromise, do: func(w *world) { w.lost(name) }},
			trial{name: "disable " + name, promise: "refused, unless forced; a dry run says so", do: func(w *world) { w.disable(name) }})
	}
	return all
}

// spoil hurts the configuration under traffic, and mends it. Steps come one after the other, with
// requests between them.
func (w *world) spoil(steps ...func()) {
	for _, step := range steps {
		step()
		w.pass(700)
	}
	w.configure()
}

func (w *world) eachFile(f func(file string) error) {
	files, _ := filepath.Glob(filepath.Join(w.dir, "*.yaml"))
	for _, file := range files {
		if err := f(file); err != nil {
			w.t.Fatal(err)
		}
	}
}

func halve(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.Truncate(file, info.Size()/2)
}

// diskFull saves in place where there is no room: the file is there, and empty.
func diskFull(w *world) {
	file, fill := filepath.Join(w.dir, "web.yaml"), filepath.Join(w.dir, ".fill")
	text, _ := os.ReadFile(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = os.WriteFile(fill, make([]byte, 1<<20), 0o600)
	if _, err := f.Write(text); err == nil {
		w.t.Error("the disk is not full")
	}
	_ = f.Close()
	w.pass(1000)
	_ = os.Remove(fill)
	_ = os.WriteFile(file, text, 0o600)
	w.under(func(context.Context, func()) {})
}

// cut writes the first bytes of plugins.yaml in place, as an editor whose disk is full or a copy
// that breaks off does.
func (w *world) cut(times int) {
	text := w.plugins()
	valid := 0
	for i := range times {
		n := (i*2 + 1) * len(text) / (2 * times)
		var v any
		if yaml.Unmarshal([]byte(text[:n]), &v) == nil {
			valid++
		}
		if err := os.WriteFile(w.file, []byte(text[:n]), 0o600); err != nil {
			w.t.Fatal(err)
		}
		w.pass(200)
		w.whole(fmt.Sprintf("cut to %d bytes", n))
		w.declare(text)
		w.pass(60)
	}
	w.note("%d of %d cuts were valid YAML", valid, times)
	w.under(func(context.Context, func()) {})
}

// whole: all plugins run.
func (w *world) whole(why string) {
	w.t.Helper()
	now := w.shown()
	for name := range w.started {
		if p := now[name]; p.PID == 0 {
			w.t.Errorf("%s: %s does not run: %q %s", why, name, p.State, p.LastError)
			w.note("%s: %s gone", why, name)
		}
	}
}

// spoiledSet puts what is no set in place of plugins.yaml.
func spoiledSet(w *world) {
	for _, text := range []string{"", "\n", "plugins:\n", "plugins: []\n", "{}\n", "null\n", "\x00\xff", "plugins: {}\n", "- a\n"} {
		if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		w.pass(200)
		w.whole(fmt.Sprintf("%q", text))
	}
	for what, f := range map[string]func() error{
		"removed":     func() error { return os.Remove(w.file) },
		"a directory": func() error { _ = os.Remove(w.file); return os.Mkdir(w.file, 0o700) },
		"a link to nothing": func() error {
			_ = os.Remove(w.file)
			return os.Symlink("/nowhere", w.file)
		},
	} {
		if err := f(); err != nil {
			w.t.Fatal(err)
		}
		w.pass(200)
		w.whole(what)
		_ = os.Remove(w.file)
		w.declare(w.plugins())
	}
	w.under(func(context.Context, func()) {})
}

// lost takes an entry out of plugins.yaml, and puts it back.
func (w *world) lost(name string) {
	text := w.plugins()
	before, rest, _ := strings.Cut(text, "- name: "+name+"\n")
	_, after, more := strings.Cut(rest, "\n- name:")
	if more {
		after = "- name:" + after
	}
	w.declare(before + after)
	w.pass(700)
	w.declare(text)
	w.under(func(context.Context, func()) { w.pass(100) })
}

// disable asks for a plugin's end by command.
func (w *world) disable(name string) {
	if said, code := w.command("plugins", "disable", name, "--dry-run"); code == 2 {
		w.t.Errorf("there is no dry run: %s", said)
		w.note("no dry run")
	}
	said, code := w.command("plugins", "disable", name)
	w.t.Logf("disable: %d %s", code, said)
	w.note("exit code %d", code)
	w.pass(700)
	if said, code := w.command("plugins", "enable", name); code != 0 {
		w.t.Logf("enable: %d %s", code, said)
	}
	w.declare(w.plugins())
	w.under(func(context.Context, func()) { w.pass(100) })
}

// busyDirectory changes plugins.yaml while another file of its directory is written 150 times a
// second.
func busyDirectory(w *world) {
	ctx, cancel := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	for n := range 3 { // one alone may have to wait for a processor for longer than the core waits for quiet
		writer.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_ = os.WriteFile(filepath.Join(filepath.Dir(w.file), fmt.Sprintf("log-%d", n)), fmt.Append(nil, i), 0o600)
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	defer func() { cancel(); writer.Wait() }()
	w.pass(100)
	began := time.Now()
	w.declare(w.plugins() + "- {name: extra, kind: registry, builtin: registry/memory, config: {services: []}}\n")
	if w.eventually("the new entry is there", func() error {
		if p := w.shown()["extra"]; p.State != "serving" {
			return fmt.Errorf("%q", p.State)
		}
		return nil
	}) {
		w.took("followed", began)
	}
	w.under(func(context.Context, func()) {})
}

// runtimeRemoved is what a cleaner of /tmp does.
func runtimeRemoved(w *world) {
	if err := mesh.Remove(filepath.Join(w.runtime, "coxswain")); err != nil {
		w.t.Fatal(err)
	}
	w.again("reg", w.kill("reg", syscall.SIGKILL))
	if said, code := w.command("plugins", "show", "reg"); code != 0 {
		w.t.Errorf("plugins show: %d %s", code, said)
		w.note("commands find no core")
	}
	w.under(func(context.Context, func()) {})
}

// upgrade changes the program in place; a plugin dies then.
func (w *world) upgrade(change func()) {
	was := w.kill("reg", 0)
	if was == 0 {
		return
	}
	change()
	if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.again("reg", was)
	w.under(func(context.Context, func()) {})
}

func hangup(w *world) {
	if err := syscall.Kill(w.plane.PID(), syscall.SIGHUP); err != nil {
		w.t.Fatal(err)
	}
	w.pass(200)
	if syscall.Kill(w.plane.PID(), 0) != nil || peakOf(w.plane.PID()) == 0 {
		w.note("it ended")
		w.t.Error("it ended")
		return
	}
	w.under(func(context.Context, func()) {})
}

// fewDescriptors has strangers take what descriptors there are; a plugin dies then.
func fewDescriptors(w *world) {
	w.under(func(ctx context.Context, ready func()) {
		ctx, cancel := context.WithCancel(ctx)
		var strangers sync.WaitGroup
		strangers.Go(func() {
			many(600, func(int) {
				if c, err := dialer(stranger)(ctx, w.plane.XDS); err == nil {
					<-ctx.Done()
					_ = c.Close()
				}
			})
		})
		w.pass(200)
		w.again("reg", w.kill("reg", syscall.SIGKILL))
		cancel()
		strangers.Wait()
	})
}
