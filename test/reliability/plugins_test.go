package reliability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// pluginTrials are plugins that hang, die, flood, and take their word back.
func pluginTrials() []trial {
	all := []trial{
		{name: "plugins that are killed", promise: "what they said stays served; edits arrive", late: true, do: killed,
			restarts: []string{"files", "mesh", "serviceentry", "reg", "istio", "header"}},
		{name: "registry that takes all back", promise: "held: what was served stays", set: registry("deletes"), do: (*world).takesBack},
		{name: "registry that loses endpoints", promise: "held: what was served stays", set: registry("loses-endpoints"), do: (*world).takesBack},
		{name: "swap to one that takes all back", promise: "held or rolled back: what was served stays", do: swapThatTakesBack},
		{name: "256 MiB of standard error", promise: "the log is bounded, and counts what was left out", set: beside("stderr"), do: (*world).loud},
		{name: "a line of 64 MiB", promise: "the log and the core's memory are bounded", set: beside("line"), do: (*world).loud},
		{name: "secrets on standard error", promise: "no log, page or command shows them", set: beside("tells"), do: (*world).tells},
		{name: "secrets in a refusal", promise: "no log, page or command shows them", set: beside("refuses"), do: (*world).tells, restarts: []string{"rogue"}},
		{name: "plugin that spies", promise: "it can't look into the core, nor call or signal it", set: beside("spies"), do: spied},
		{name: "processes that leave the group", promise: "they end with their plugin", set: beside("offspring"), do: offspring, restarts: []string{"rogue"}},
	}
	for _, kind := range []string{"files", "mesh", "serviceentry", "reg", "istio", "header"} {
		all = append(all, trial{
			name: "stopped: " + kind, promise: "it is noticed, shown and started again",
			limits: "{progress: 3s}", late: true, restarts: []string{kind}, do: func(w *world) { w.stopped(kind) },
		})
	}
	all = append(all, trial{
		name: "stopped: gatewayapi", promise: "it is noticed, shown and started again; its Gateways serve, edits of others arrive",
		limits: "{progress: 3s}", set: gatewayAPI, late: true, restarts: []string{"gatewayapi"},
		do: func(w *world) { w.stopped("gatewayapi") },
	})
	for _, what := range []string{"log-flood", "row-flood", "free-flood", "large-frame", "endless-rows", "hungry"} {
		all = append(all, trial{
			name: "plugin: " + what, promise: "it alone fails; nobody else waits", restarts: []string{"rogue"},
			do: func(w *world) { w.broken(what) },
		})
	}
	return all
}

// beside is a registry of its own that does something.
func beside(what string) func(w *world) string {
	return func(w *world) string {
		return fmt.Sprintf("- {name: rogue, kind: registry, optional: true, insecure: true, process: {command: %s, args: [%s]},\n"+
			"   config: {host: rogue.example, port: %d, begin: %s, secret: {env: RELIABILITY_SECRET}}}\n", rogue, what, w.backends[1].Port, w.signal())
	}
}

// gatewayAPI has the Gateway and its routes be those of the Gateway API.
func gatewayAPI(w *world) string {
	w.place("gateway.yaml", fmt.Sprintf(apiGateway, w.port))
	w.place("routes.yaml", fmt.Sprintf(apiRoute, "web")+fmt.Sprintf(apiRoute, "reg"))
	return "- {name: gatewayapi, kind: config, builtin: config/gatewayapi, limits: " + w.trial.limits + "}\n"
}

// registry is in place of the one that has reg.example.
func registry(what string) func(w *world) string {
	return func(w *world) string {
		w.reg = fmt.Sprintf("  insecure: true\n  process: {command: %s, args: [%s]}\n  config: {host: reg.example, port: %d, begin: %s}\n",
			rogue, what, w.backends[1].Port, w.signal())
		return ""
	}
}

// signal is the file whose presence tells rogues to begin.
func (w *world) signal() string { return filepath.Join(w.root, "begin") }

func (w *world) begin() { w.replace(w.signal(), "now") }

// shown is what `coxswain plugins` shows, by name. The program that runs may be gone.
func (w *world) shown() map[string]admin.Plugin {
	w.t.Helper()
	said, code := w.command("plugins", "--addr", w.plane.HTTP, "-o", "json")
	var list []admin.Plugin
	if err := json.Unmarshal([]byte(said), &list); err != nil || code != 0 {
		w.t.Logf("plugins: %d %v in %s", code, err, said)
	}
	byName := map[string]admin.Plugin{}
	for _, p := range list {
		byName[p.Name] = p
	}
	return byName
}

// kill sends a signal to a plugin's process, and returns its number.
func (w *world) kill(plugin string, s syscall.Signal) int {
	w.t.Helper()
	p := w.shown()[plugin]
	if p.PID <= 0 {
		w.t.Errorf("%s has no process: %q %s", plugin, p.State, p.LastError)
		return 0
	}
	if err := syscall.Kill(p.PID, s); err != nil {
		w.t.Error(err)
	}
	return p.PID
}

// again waits until a plugin serves from another process.
func (w *world) again(plugin string, was int) bool {
	w.t.Helper()
	return w.eventually(plugin+" serves from a new process", func() error {
		if p := w.shown()[plugin]; p.State != "serving" || p.PID == was || p.PID == 0 {
			return fmt.Errorf("%s, pid %d, %s", p.State, p.PID, p.LastError)
		}
		return nil
	})
}

// stopped hangs a plugin.
func (w *world) stopped(plugin string) {
	began := time.Now()
	was := w.kill(plugin, syscall.SIGSTOP)
	if was == 0 {
		return
	}
	defer func() { _ = syscall.Kill(was, syscall.SIGCONT) }()
	w.under(func(_ context.Context, _ func()) {
		if w.again(plugin, was) {
			w.took("started again", began)
		}
	})
}

// killed kills one plugin after the other, for eight seconds.
func killed(w *world) {
	w.under(func(context.Context, func()) {
		n := 0
		for began := time.Now(); time.Since(began) < 8*time.Second; {
			for _, p := range w.shown() {
				if p.PID > 0 && syscall.Kill(p.PID, syscall.SIGKILL) == nil {
					n++
				}
				time.Sleep(200 * time.Millisecond)
			}
		}
		w.note("%d deaths", n)
	})
	for name, p := range w.shown() {
		if p.PID > 0 && p.State == "serving" {
			continue
		}
		w.again(name, 0)
	}
}

// takesBack has the registry take its word back under traffic and edits.
func (w *world) takesBack() {
	w.begin()
	w.under(func(_ context.Context, ready func()) { w.pass(600) })
}

func swapThatTakesBack(w *world) {
	w.replace(filepath.Join(w.root, "new.yaml"), fmt.Sprintf("{host: reg.example, port: %d, begin: %s}\n", w.backends[1].Port, w.signal()))
	said, code := w.command("plugins", "swap", "reg", "--process", rogue+" deletes", "--config", filepath.Join(w.root, "new.yaml"))
	if code != 0 {
		w.t.Fatalf("the swap itself failed: %s", said)
	}
	w.takesBack()
}

// loud has a plugin write to standard error, as much as it can for ten seconds.
func (w *world) loud() {
	before := len(w.plane.Log())
	w.begin()
	w.under(func(_ context.Context, ready func()) { w.pass(2000) })
	grown := len(w.plane.Log()) - before
	w.note("the log grew by %d KiB", grown>>10)
	if grown > 8<<20 {
		w.t.Errorf("the log grew by %d bytes", grown)
	}
}

// secret is what nobody may see.
const secret = "s3cr3t-of-the-rogue"

func (w *world) tells() {
	w.begin()
	w.under(func(context.Context, func()) { w.pass(400) })
	if !strings.Contains(w.plane.Log(), "rogue") {
		w.t.Error("the log says nothing of the rogue")
	}
	list, _ := w.command("plugins", "--addr", w.plane.HTTP)
	show, _ := w.command("plugins", "show", "rogue")
	debug, _ := w.plane.Get("/debug/plugins")
	for place, text := range map[string]string{"the log": w.plane.Log(), "plugins": list, "plugins show": show, "/debug/plugins": debug} {
		if strings.Contains(text, secret) {
			w.t.Errorf("%s shows the secret", place)
			w.note("shown by %s", place)
		}
	}
}

// spied: a plugin tells what it could see and do.
func spied(w *world) {
	w.begin()
	w.under(func(context.Context, func()) {
		w.eventually("it has tried", func() error {
			if !strings.Contains(w.plane.Log(), ": admin socket") {
				return errors.New("it has not called the core yet")
			}
			return nil
		})
	})
	for line := range strings.Lines(w.plane.Log()) {
		if _, what, ok := strings.Cut(line, "spied: "); ok {
			what, _, _ = strings.Cut(strings.TrimSpace(what), `"`)
			w.t.Errorf("it could reach the core's %s", what)
			w.note("spied: %s", what)
		}
	}
}

// offspring: processes that left their plugin's session and group are gone when it is.
func offspring(w *world) {
	w.begin()
	count := func(want int) func() error {
		return func() error {
			if got := len(w.offspring()); got != want {
				return fmt.Errorf("%d processes", got)
			}
			return nil
		}
	}
	defer func() {
		for _, pid := range w.offspring() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	w.eventually("there are five", count(5))
	if err := os.Remove(w.signal()); err != nil {
		w.t.Error(err)
	}
	was := w.kill("rogue", syscall.SIGKILL)
	w.eventually("none is left of a plugin that died", count(0))
	w.again("rogue", was)
	w.under(func(context.Context, func()) {})
}

// offspring are the processes that the rogue of this test started: its own number of seconds is in
// their command lines.
func (w *world) offspring() (all []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if text, _ := os.ReadFile(file); bytes.Equal(text, fmt.Appendf(nil, "/bin/sleep\x00299.%d\x00", w.backends[1].Port)) {
			var pid int
			if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil {
				all = append(all, pid)
			}
		}
	}
	slices.Sort(all)
	return all
}

// broken adds a plugin that breaks a rule of the contract.
func (w *world) broken(what string) {
	w.declare(w.plugins() + fmt.Sprintf(
		"- {name: rogue, kind: registry, optional: true, insecure: true, process: {command: %s, args: [%s]}, limits: {memory: 128Mi}}\n",
		breaker, what,
	))
	w.under(func(context.Context, func()) { w.pass(1600) })
	w.declare(w.plugins())
}

// asked is how many requests were made.
func (w *world) asked() (n int) {
	for _, t := range w.traffic {
		n += t.Asked()
	}
	return n
}

// pass lets a number of requests pass.
func (w *world) pass(requests int) {
	w.t.Helper()
	until := w.asked() + requests
	w.eventually(fmt.Sprintf("%d requests have passed", requests), func() error {
		if n := w.asked(); n < until {
			return fmt.Errorf("%d are missing", until-n)
		}
		return nil
	})
}
