package reliability

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// world is a control plane with a real gateway under traffic and two well-behaved clients.
type world struct {
	t     *testing.T
	trial trial
	// root holds all that follows: dir has the configuration, file is plugins.yaml, runtime where
	// the core keeps its sockets, program the binary.
	root, dir, file, runtime, program string
	// reg is how plugins.yaml runs the registry.
	reg string

	secure string
	// authority issued the certificate of the port with TLS.
	authority *authority.Authority

	port     int
	backends []*mesh.Backend
	plane    *mesh.Plane
	gateway  *envoy.Envoy
	traffic  []*mesh.Traffic
	probes   []*probe
	memory   *memory
	edited   int64
	started  map[string]int
	figures  *figures
}

// probed is the host whose cluster shows edits.
const probed = "probe.example"

// between is the time between two requests of a client: four of them make 200 a second.
const between = 20 * time.Millisecond

func newWorld(t *testing.T, c trial, f *figures) *world {
	t.Helper()
	envoy.Binary(t)                      // or skip
	root, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	w := &world{
		t: t, trial: c, root: root, dir: filepath.Join(root, "config"), file: filepath.Join(root, "set", "plugins.yaml"),
		runtime: filepath.Join(root, "run"), program: program, port: wait.Port(t), figures: f,
		backends: []*mesh.Backend{mesh.NewBackend(t, "web"), mesh.NewBackend(t, "reg")},
	}
	for _, dir := range []string{w.dir, filepath.Dir(w.file), w.runtime} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case c.small:
		w.mount()
	case c.own:
		w.copyProgram()
	case c.few:
		w.program = filepath.Join(root, "few")
		if err := os.WriteFile(w.program, []byte("#!/bin/sh\nulimit -n 256\nexec "+program+" \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", w.runtime)
	t.Setenv("RELIABILITY_SECRET", secret)
	w.configure()
	w.start()
	return w
}

// mount makes the directory of the configuration a small disk.
func (w *world) mount() {
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", w.dir).CombinedOutput(); err != nil {
		need.Missing(w.t, "no tmpfs may be mounted here: run as root: %v %s", err, out)
	}
	w.t.Cleanup(func() { _ = syscall.Unmount(w.dir, syscall.MNT_DETACH) })
}

func (w *world) copyProgram() {
	w.program = filepath.Join(w.root, "coxswain")
	if out, err := exec.Command("cp", program, w.program).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// start starts the control plane, the gateway, its traffic and the clients.
func (w *world) start() {
	w.t.Helper()
	start := mesh.Start
	if w.trial.shared {
		start = mesh.StartShared
	}
	w.plane = start(w.t, w.program, "", slices.Concat([]string{"--plugins", w.file}, w.secured(), w.trial.flags)...)
	w.plane.Ready(w.t)
	at := wait.Address(w.t)
	w.gateway = envoy.Start(w.t, "gateway", at, w.plane.Bootstrap(w.t, "--name", "gateway", "--namespace", "test", "--admin", at,
		"--type", "router", "--ip", "127.0.0.21", "--labels",
		"istio=ingressgateway,gateway.networking.k8s.io/gateway-name=gateway"))
	w.gateway.Ready(w.t)
	for _, target := range w.targets() {
		wait.For(w.t, target.String()+" answers", func() error {
			code, _, err := target.Ask(context.Background())
			if code != 200 {
				return fmt.Errorf("%d %v", code, err)
			}
			return nil
		})
	}
	if w.trial.begun != nil {
		w.trial.begun(w)
	}
	for i, protocol := range []string{"sotw", "delta"} {
		w.probes = append(w.probes, newProbe(w.t, w.plane.XDS, protocol, i))
	}
	w.arrives(wait.Deadline)
}

func (w *world) targets() []mesh.Target {
	at := fmt.Sprintf("127.0.0.1:%d", w.port)
	return []mesh.Target{{Address: at, Host: "web.example", Path: "/"}, {Address: at, Host: "reg.example", Path: "/"}}
}

// secured are the flags of the port with TLS, if the trial has one.
func (w *world) secured() []string {
	if !w.trial.secure {
		return nil
	}
	certificates := filepath.Join(w.root, "certificates")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.authority = authority.New(w.t)
	w.authority.Issue(w.t, certificates, "spiffe://cluster.local/ns/istio-system/sa/coxswain")
	w.secure = wait.Address(w.t)
	return []string{
		"--secureGRPCAddr", w.secure, "--tlsCertFile", filepath.Join(certificates, "cert-chain.pem"),
		"--tlsKeyFile", filepath.Join(certificates, "key.pem"), "--caCertFile", filepath.Join(certificates, "root-cert.pem"),
	}
}

// run measures calm edits, does what the trial does, and judges.
func (w *world) run() {
	w.started = w.restarts()
	for range 5 {
		d, ok := w.arrives(wait.Deadline)
		if !ok {
			w.t.Fatal("an edit does not arrive even in calm")
		}
		w.figures.calm = max(w.figures.calm, d)
	}
	for _, target := range w.targets() {
		w.traffic = append(w.traffic, mesh.NewSlowTraffic(w.t, target, between))
	}
	w.figures.before = peakOf(w.plane.PID())
	w.memory = watch(w.plane.PID())
	w.trial.do(w)
	if _, ok := w.arrives(w.patience()); !ok {
		w.t.Error("afterwards an edit does not arrive")
	}
	w.judge()
}

// patience is how long an edit may take before it is lost.
func (w *world) patience() time.Duration {
	if *all {
		return 15 * time.Second
	}
	return time.Minute
}

// arrives makes an edit and returns after how long all clients had it.
func (w *world) arrives(patience time.Duration) (time.Duration, bool) {
	w.t.Helper()
	w.edited++
	began := time.Now()
	w.place("probe.yaml", fmt.Sprintf(probeConfig, w.edited))
	deadline := time.After(patience)
	for _, p := range w.probes {
		if !p.has(w.edited, deadline) {
			return time.Since(began), false
		}
	}
	return time.Since(began), true
}

// edit measures one while an abuse lasts.
func (w *world) edit() {
	d, ok := w.arrives(w.patience())
	w.figures.edits++
	w.figures.worst = max(w.figures.worst, d)
	if !ok {
		w.figures.lost++
	}
}

// under does something and measures edits while it lasts: ten after it called ready, and as long as
// 600 requests take, or until it ends by itself. It is over after a minute and a half, whatever it
// does.
func (w *world) under(abuse func(ctx context.Context, ready func())) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		abuse(ctx, sync.OnceFunc(func() { close(begun) }))
	}()
	until := w.asked() + 600
	for after := 0; (after < 10 || w.asked() < until) && w.figures.lost < 3 && ctx.Err() == nil; {
		w.edit()
		select {
		case <-begun:
			after++
		case <-ended:
			after, until = 10, 0
		default:
		}
	}
	cancel()
	<-ended
}

// underBurst does so under an abuse that takes eight seconds at most.
func (w *world) underBurst(abuse func(ctx context.Context, ready func())) {
	w.under(func(ctx context.Context, ready func()) {
		ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
		defer cancel()
		abuse(ctx, ready)
	})
}

// judge compares with what is promised.
func (w *world) judge() {
	w.t.Helper()
	f := w.figures
	f.core, f.generator = w.memory.peaks()
	for _, traffic := range w.traffic {
		asked, failed := traffic.Stop()
		f.asked += asked
		f.failed += len(failed)
		for _, line := range failed[:min(3, len(failed))] {
			w.t.Error(line)
		}
	}
	if f.asked == 0 {
		w.t.Error("no traffic")
	}
	if f.failed > 0 {
		w.t.Errorf("%s requests failed", f.requests())
	}
	for _, p := range w.probes {
		f.ended += int(p.ended.Load())
	}
	if f.ended > 0 {
		w.t.Errorf("streams of well-behaved clients were ended %d times", f.ended)
	}
	w.undisturbed()
	w.bounded()
	w.prompt()
	for _, line := range w.gateway.Unhappy(w.t) {
		w.t.Error(line)
	}
}

// undisturbed: no plugin was restarted that should not have been.
func (w *world) undisturbed() {
	for name, n := range w.restarts() {
		if n -= w.started[name]; n > 0 && !slices.Contains(w.trial.restarts, name) {
			w.figures.restarts += n
			w.t.Errorf("%s was restarted %d times: %s", name, n, w.shown()[name].LastError)
		}
	}
}

func (w *world) restarts() map[string]int {
	counts := map[string]int{}
	for name, p := range w.shown() {
		counts[name] = p.Restarts
	}
	return counts
}

func (w *world) bounded() {
	for _, c := range []struct {
		name      string
		had, most int
	}{{"the core", w.figures.core, w.trial.core}, {"the generator", w.figures.generator, w.trial.generator}} {
		if c.most == 0 {
			c.most = most
		}
		if mesh.Race {
			c.most *= raceTimes
		}
		if c.had > c.most {
			w.t.Errorf("%s had %d MiB, more than %d", c.name, c.had, c.most)
		}
	}
}

// prompt: edits came, and in time, which is only looked at where nothing else keeps the machine
// busy.
func (w *world) prompt() {
	f := w.figures
	if f.lost > 0 {
		w.t.Errorf("%d of %d edits did not arrive within %v", f.lost, f.edits, w.patience())
	}
	if *all && !w.trial.late && f.worst > f.promised() {
		w.t.Errorf("an edit took %v, more than %v (%v in calm)", f.worst, f.promised(), f.calm)
	}
}

func (w *world) note(format string, args ...any) {
	w.figures.notes = append(w.figures.notes, fmt.Sprintf(format, args...))
}

// command runs the program and returns what it says and its exit code.
func (w *world) command(args ...string) (string, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
