package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// bench is a control plane whose plugins are changed.
type bench struct {
	t     *testing.T
	dir   string
	file  string
	plane *mesh.Plane
}

// newBench starts a control plane with a plugins.yaml.
func newBench(t *testing.T, set string, args ...string) *bench {
	t.Helper()
	return newBenchIn(t, t.TempDir(), set, args...)
}

func newBenchIn(t *testing.T, dir, set string, args ...string) *bench {
	t.Helper()
	mesh.RuntimeDir(t)
	b := &bench{t: t, dir: dir}
	b.file = filepath.Join(b.dir, "plugins.yaml")
	place(t, b.file, set)
	b.plane = mesh.Start(t, program, "", append([]string{"--plugins", b.file}, args...)...)
	b.plane.Ready(t)
	return b
}

// plugins runs `coxswain plugins`, and returns what it says; ok: it succeeded.
func (b *bench) plugins(args ...string) (text string, ok bool) {
	b.t.Helper()
	cmd := exec.Command(program, append([]string{"plugins"}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	b.t.Logf("coxswain plugins %s\n%s", strings.Join(args, " "), out)
	return string(out), err == nil
}

// must runs it and wants these words in what it says.
func (b *bench) must(want string, args ...string) {
	b.t.Helper()
	// A plugin that took another's place is kept a moment later, where the window is short.
	text, ok := b.plugins(args...)
	if kept := want == "switched" && strings.Contains(text, "kept"); !ok || !kept && !strings.Contains(text, want) {
		b.t.Fatalf("want success and %q", want)
	}
}

// fails runs it and wants it to fail with these words.
func (b *bench) fails(want string, args ...string) {
	b.t.Helper()
	if text, ok := b.plugins(args...); ok || !strings.Contains(text, want) {
		b.t.Fatalf("want failure and %q", want)
	}
}

func (b *bench) detail(name string) api.Detail {
	b.t.Helper()
	cmd := exec.Command(program, "plugins", "show", name, "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("coxswain plugins show: %v", err)
	}
	var d api.Detail
	if err := json.Unmarshal(out, &d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// becomes waits until a plugin's last change has come to a state.
func (b *bench) becomes(name string, want swap.State) *swap.Change {
	b.t.Helper()
	var last *swap.Change
	wait.For(b.t, fmt.Sprintf("the change of %s is %s", name, want), func() error {
		all := b.detail(name).Changes
		if len(all) == 0 {
			return fmt.Errorf("there is none")
		}
		if last = all[len(all)-1]; last.State != want {
			return fmt.Errorf("it is %s", last.State)
		}
		return nil
	})
	return last
}

func (b *bench) says(file string) string {
	b.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// clusterNames of a sidecar.
func (b *bench) clusterNames() []string {
	b.t.Helper()
	sidecar := b.plane.Bootstrap(b.t, "--ip", "10.0.0.1")
	return mesh.Names(b.t, b.plane.Fetch(b.t, sidecar, clusters))
}

const swapSet = `# What runs.
plugins:
  # Two services.
  - name: memory
    kind: registry
    builtin: registry/memory
    rollback: {window: 300ms}
    config:
      services:
        - {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}, {address: 10.1.0.2}]} # the first
        - {host: b.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.2.0.1}]}

  # What proxies get.
  - name: istio
    kind: generator
    builtin: generator/istio
    rollback: {window: 300ms}
`

// TestSwapCommands: a registry's config is changed by command, compared first, guarded, and written
// to the file; nothing else changes.
func TestSwapCommands(t *testing.T) {
	b := newBench(t, swapSet)
	place(t, filepath.Join(b.dir, "new.yaml"), `services:
- {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}, {address: 10.1.0.3}]}
- {host: c.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.3.0.1}]}
`)
	place(t, filepath.Join(b.dir, "empty.yaml"), `services:
- {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: []}
`)
	before := b.says(b.file)
	b.must("+2 endpoints −2 +1 service −1", "swap", "memory", "--config", "new.yaml", "--dry-run")
	b.fails("service default/a.example would have no endpoints", "swap", "memory", "--config", "empty.yaml")
	if got := b.clusterNames(); b.says(b.file) != before || slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "c.example") }) {
		t.Fatalf("something changed: %v", got)
	}
	b.must("switched", "swap", "memory", "--config", "new.yaml")
	if got := b.clusterNames(); !slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "c.example") }) {
		t.Errorf("clusters %v", got)
	}
	b.becomes("memory", swap.Kept)
	text := b.says(b.file)
	if !strings.Contains(text, "c.example") || !strings.HasPrefix(text, "# What runs.\nplugins:\n  # Two services.\n  - name: memory\n") ||
		!strings.HasSuffix(text,
			"\n  # What proxies get.\n  - name: istio\n    kind: generator\n    builtin: generator/istio\n    rollback: {window: 300ms}\n") {
		t.Errorf("plugins.yaml became\n%s", text)
	}
	b.must("no difference", "restart", "istio")
	b.must("kept", "disable", "memory", "--force")
	wait.For(t, "the services are gone", func() error {
		if got := b.clusterNames(); slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "example") }) {
			return fmt.Errorf("clusters %v", got)
		}
		return nil
	})
	if !strings.Contains(b.says(b.file), "disabled: true") || b.detail("memory").State != "disabled" {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
	b.must("kept", "enable", "memory")
	wait.For(t, "its services are back", func() error {
		if got := b.clusterNames(); !slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "c.example") }) {
			return fmt.Errorf("clusters %v", got)
		}
		return nil
	})
	if b.says(b.file) != text {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
	b.fails("config", "swap", "memory", "--config", "nowhere.yaml")
	b.fails("there is no plugin", "restart", "nobody")
	if code := b.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.fails("no control plane of this user runs here", "show", "memory")
}

// TestPluginsFileIsFollowed: an entry that is changed, added or removed concerns that plugin alone,
// and a mistake changes nothing.
func TestPluginsFileIsFollowed(t *testing.T) {
	b := newBench(t, swapSet)
	p := newProxy(t, b.plane, "follower", nil)
	sees := func(what, name string, there bool) {
		t.Helper()
		wait.For(t, what, func() error { return p.want(name, there) })
	}
	sees("it has the first clusters", "outbound|80||b.example", true)
	istio := b.detail("istio").PID

	place(t, b.file, strings.Replace(swapSet, "kind: registry", "kind: registri", 1))
	wait.For(t, "the mistake is shown with its place", func() error {
		if d := b.detail("memory"); !strings.Contains(d.FileFault, "plugins.yaml:5:11: ") {
			return fmt.Errorf("%q", d.FileFault)
		}
		return nil
	})
	const more = `  - name: more
    kind: registry
    builtin: registry/memory
    config: {services: [{host: more.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.4.0.1}]}]}
`
	place(t, b.file, strings.Replace(swapSet, "b.example", "d.example", 1)+more)
	sees("the changed entry is applied", "outbound|80||d.example", true)
	sees("what it had is gone", "outbound|80||b.example", false)
	sees("the added entry is applied", "outbound|80||more.example", true)
	if d := b.detail("memory"); d.FileFault != "" || len(d.Changes) != 1 || d.Changes[0].What != "swap" {
		t.Errorf("%+v", d)
	}
	place(t, b.file, swapSet)
	c := b.becomes("more", swap.Refused)
	if words := strings.Join(c.Reasons, "; "); !strings.Contains(words, "1 endpoint, 1 service would go with it, which no other plugin has") {
		t.Errorf("it says %q", words)
	}
	sees("the removed entry runs on", "outbound|80||more.example", true)
	b.must("kept", "disable", "more", "--force")
	sees("the removed entry is gone", "outbound|80||more.example", false)
	sees("the changed entry is back", "outbound|80||b.example", true)
	if d := b.detail("istio"); d.PID != istio || len(d.Changes) > 0 {
		t.Errorf("the generator's entry is the same, and it was changed: %+v", d)
	}
	if _, err := p.got(); err != nil {
		t.Error(err)
	}
	if all := b.plane.Plugins(t); all["more"].Name != "" || all["istio"].Name == "" {
		t.Errorf("the plugin that was removed is shown: %v", all)
	}
}

// TestRemovalIsHeld: an entry that is taken out of the file runs on if a service that stays would
// have no endpoints without it, until it is forced.
func TestRemovalIsHeld(t *testing.T) {
	const addresses = `  - {name: addresses, kind: registry, builtin: registry/memory, config: {services: [
      {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.9.0.1}]}]}}
`
	without := strings.ReplaceAll(strings.Replace(swapSet, "endpoints: [{address: 10.1.0.1}, {address: 10.1.0.2}]", "endpoints: []", 1), "300ms", "1s")
	b := newBench(t, without+addresses)
	p := newProxy(t, b.plane, "held", nil, "outbound|80||a.example")
	wait.For(t, "it has the endpoint", func() error { return p.want("outbound|80||a.example", true) })
	pid := b.detail("addresses").PID
	place(t, b.file, without)
	c := b.becomes("addresses", swap.Refused)
	if words := strings.Join(c.Reasons, "; "); !strings.Contains(words, "service default/a.example would have no endpoints") ||
		!strings.Contains(words, "coxswain plugins disable addresses --force") {
		t.Errorf("it says %q", words)
	}
	if now := b.detail("addresses"); now.PID != pid || now.State != "serving" {
		t.Errorf("it is %+v", now)
	}
	// What comes back is the same plugin, and what changes beside it is applied.
	place(t, b.file, strings.Replace(without, "b.example", "d.example", 1)+addresses)
	wait.For(t, "the other entry is applied", func() error { return p.want("outbound|80||d.example", true) })
	if now := b.detail("addresses"); now.PID != pid || len(now.Changes) != 1 {
		t.Errorf("it is %+v", now)
	}
	place(t, b.file, without)
	wait.For(t, "it is held again", func() error {
		if n := len(b.detail("addresses").Changes); n != 2 {
			return fmt.Errorf("%d changes", n)
		}
		return nil
	})
	b.fails("service default/a.example would have no endpoints", "disable", "addresses")
	b.must("kept", "disable", "addresses", "--force")
	if all := b.plane.Plugins(t); all["addresses"].Name != "" || all["istio"].Name == "" || b.says(b.file) != without {
		t.Errorf("it is still there: %v\n%s", all, b.says(b.file))
	}
}

// newVoters is a bench whose proxies show by tokens who they are.
func newVoters(t *testing.T, set string, names ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	tokens := "tokens:\n"
	for _, name := range names {
		tokens += fmt.Sprintf("- {token: %s, identities: [spiffe://cluster.local/ns/default/sa/%s]}\n", tokenOf(name), name)
	}
	place(t, filepath.Join(dir, "tokens.yaml"), tokens)
	return newBenchIn(t, dir,
		set+"\n  - {name: workloads, kind: authenticator, builtin: authenticator/token, config: {file: tokens.yaml}}\n",
		"--authPlaintext")
}

func tokenOf(name string) string { return "9f1c2a7e0b6d4c35a8e1-" + name }

// newVoter connects a proxy with a token of its name.
func newVoter(t *testing.T, plane *mesh.Plane, name string, refuse func(string) bool) *proxy {
	t.Helper()
	return newProxyWith(t, plane, name, tokenOf(name), nil, refuse)
}

// TestRollback: proxies refuse what a swapped plugin leads to, and the old one comes back, in the
// file, too.
func TestRollback(t *testing.T) {
	b := newVoters(t, strings.ReplaceAll(swapSet, "window: 300ms", "nackedProxies: 1, window: 1m"), "one", "two", "three")
	bad := func(name string) bool { return strings.Contains(name, "c.example") }
	proxies := []*proxy{newVoter(t, b.plane, "one", bad), newVoter(t, b.plane, "two", bad), newVoter(t, b.plane, "three", nil)}
	for _, p := range proxies {
		wait.For(t, "it has the first clusters", func() error { return p.want("outbound|80||b.example", true) })
	}
	before := b.says(b.file)
	place(t, filepath.Join(b.dir, "bad.yaml"), `services:
- {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}
- {host: c.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.3.0.1}]}
`)
	b.must("switched", "swap", "memory", "--config", "bad.yaml")
	c := b.becomes("memory", swap.RolledBack)
	if !strings.Contains(strings.Join(c.Reasons, ""), "2 proxies refused what they got, more than rollback.nackedProxies, 1") ||
		!strings.Contains(strings.Join(c.Refusals, "\n"), "I don't like outbound|80||c.example") {
		t.Errorf("%+v", c)
	}
	b.must("I don't like outbound|80||c.example", "show", "memory")
	for _, p := range proxies {
		wait.For(t, "it has the old clusters", func() error {
			if err := p.want("outbound|80||c.example", false); err != nil {
				return err
			}
			return p.want("outbound|80||b.example", true)
		})
	}
	if b.says(b.file) != before {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
}

// TestRollbackByCommand: the last swap is taken back, in plugins.yaml too, whatever else has
// changed there, whether a command or an edit made it.
func TestRollbackByCommand(t *testing.T) {
	b := newBench(t, strings.Replace(swapSet, "window: 300ms", "window: 10m", 1))
	before := b.says(b.file)
	const service = "services: [{host: %s, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}]\n"
	place(t, filepath.Join(b.dir, "c.yaml"), fmt.Sprintf(service, "c.example"))
	b.fails("nothing to go back to", "rollback", "memory")
	b.fails("there is no plugin nobody", "rollback", "nobody")

	// At once, by the instance that is warm.
	old := b.detail("memory").PID
	b.must("switched", "swap", "memory", "--config", "c.yaml", "--force")
	b.serves("c.example", true)
	wrote := b.says(b.file)
	b.must("+2 services −1", "rollback", "memory", "--dry-run")
	if b.says(b.file) != wrote || b.detail("memory").PID == old {
		t.Errorf("the dry run changed something; plugins.yaml is\n%s", b.says(b.file))
	}
	b.must("of the entry's config; the instance that ran before is warm still", "rollback", "memory")
	b.serves("c.example", false)
	b.serves("b.example", true)
	if b.says(b.file) != before || b.detail("memory").PID != old {
		t.Errorf("it is process %d, not %d; plugins.yaml is\n%s", b.detail("memory").PID, old, b.says(b.file))
	}
	b.must("memory: rollback switched, by ", "log", "memory")
	b.fails("nothing to go back to", "rollback", "memory")

	// Later, of an edit, beside another that stays.
	place(t, b.file, strings.NewReplacer("b.example", "d.example", "window: 10m", "window: 1ms").Replace(before))
	b.serves("d.example", true)
	b.becomes("memory", swap.Kept)
	const more = "  - {name: more, kind: registry, builtin: registry/memory, config: {services: [{host: more.example, " +
		"ports: [{number: 80, name: http, protocol: HTTP}]}]}}\n"
	place(t, b.file, b.says(b.file)+more)
	b.serves("more.example", true)
	b.must("a new instance starts", "rollback", "memory")
	b.serves("d.example", false)
	b.serves("b.example", true)
	if b.says(b.file) != before+more {
		t.Errorf("plugins.yaml is\n%s", b.says(b.file))
	}

	// A guard is asked, as for any swap.
	place(t, filepath.Join(b.dir, "only.yaml"), strings.Replace(fmt.Sprintf(service, "a.example"), "endpoints: [{address: 10.1.0.1}]", "endpoints: []", 1))
	b.must("switched", "swap", "memory", "--config", "only.yaml", "--force")
	place(t, filepath.Join(b.dir, "a.yaml"), fmt.Sprintf(service, "a.example"))
	b.must("switched", "swap", "memory", "--config", "a.yaml", "--ephemeral")
	b.fails("--force goes on all the same", "rollback", "memory")
	b.must("rollback", "rollback", "memory", "--force")
	if text := b.says(b.file); !strings.Contains(text, "endpoints: []") {
		t.Errorf("plugins.yaml is\n%s", text)
	}
}

// TestDryRunLeavesTheWindow: while the old instance is kept warm, others can be compared, and it
// comes back all the same if proxies refuse what the swap brought.
func TestDryRunLeavesTheWindow(t *testing.T) {
	b := newVoters(t, strings.ReplaceAll(swapSet, "window: 300ms", "window: 10m"), "dry")
	p := newVoter(t, b.plane, "dry", func(name string) bool { return strings.Contains(name, "c.example") })
	wait.For(t, "it has the first clusters", func() error { return p.want("outbound|80||b.example", true) })
	const service = "- {host: %s, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}\n"
	for _, name := range []string{"c", "d", "e"} {
		place(t, filepath.Join(b.dir, name+".yaml"), fmt.Sprintf("services:\n"+service+service, "a.example", name+".example"))
	}
	warm := func() {
		t.Helper()
		c := b.detail("memory").Changes
		if !slices.ContainsFunc(c, func(c *swap.Change) bool { return c.State == swap.Switched }) {
			t.Fatalf("no window is open any more: %+v", c)
		}
	}
	b.must("switched", "swap", "memory", "--config", "d.yaml")
	for range 2 {
		b.must("+1 service −1", "swap", "memory", "--config", "e.yaml", "--dry-run")
		b.must("no difference", "swap", "istio", "--builtin", "generator/istio", "--dry-run")
		warm()
	}
	wait.For(t, "the swap counts", func() error { return p.want("outbound|80||d.example", true) })
	b.must("switched", "swap", "memory", "--config", "c.yaml")
	b.plugins("swap", "memory", "--config", "e.yaml", "--dry-run") // it may give way to the return
	wait.For(t, "the old instance is back", func() error { return p.want("outbound|80||c.example", false) })
	wait.For(t, "the change is rolled back", func() error {
		c := b.detail("memory").Changes
		if !slices.ContainsFunc(c, func(c *swap.Change) bool { return c.State == swap.RolledBack }) {
			return fmt.Errorf("the changes are %+v", c)
		}
		return nil
	})
}

// TestSwapToTheSame: a generator that makes the same sends nothing.
func TestSwapToTheSame(t *testing.T) {
	b := newBench(t, swapSet)
	p := newProxy(t, b.plane, "quiet", nil, "outbound|80||a.example")
	wait.For(t, "it has all", func() error {
		if err := p.want("outbound|80||a.example", true); err != nil {
			return err
		}
		return p.want("outbound|80||b.example", true)
	})
	for range 3 {
		b.must("no difference", "restart", "istio")
		b.becomes("istio", swap.Kept)
	}
	place(t, b.file, strings.Replace(swapSet, "b.example", "d.example", 1))
	wait.For(t, "a change goes out", func() error { return p.want("outbound|80||d.example", true) })
	got, err := p.got()
	if err != nil {
		t.Error(err)
	}
	for resource, n := range got {
		if n != 1 {
			t.Errorf("%s was sent %d times", resource, n)
		}
	}
}
