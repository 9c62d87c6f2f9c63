// Command demo runs a mesh on this machine: the control plane, two versions of a service, an ingress gateway and a client's sidecar, both real
// Envoys. Everything listens on loopback addresses, and stops with Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Ports of the demo. Those of the services stand in config/ too.
const (
	xds, pages, metrics      = "127.0.0.1:15010", "127.0.0.1:8080", "127.0.0.1:15014"
	gateway, gatewayAdmin    = "127.0.0.1:7080", "127.0.0.1:15100"
	sidecar, sidecarAdmin    = "127.0.0.1:9080", "127.0.0.1:15200"
	v1Ports, v2Ports         = "9101,9102", "9201,9202"
	host                     = "hello.example"
	patience, stopping, tick = 30 * time.Second, 12 * time.Second, 50 * time.Millisecond
	reminder                 = 5 * time.Second
)

func main() {
	// Children die with the thread that started them, so it must last as long as the program.
	runtime.LockOSThread()
	d := demo{}
	flag.StringVar(&d.coxswain, "coxswain", "bin/coxswain", "the control plane")
	flag.StringVar(&d.envoy, "envoy", ".cache/envoy", "Envoy")
	flag.StringVar(&d.backend, "backend", ".cache/bin/backend", "the service")
	flag.StringVar(&d.config, "config", "examples/demo/config", "configuration to copy and serve")
	flag.StringVar(&d.plugins, "plugins", "examples/demo/plugins.yaml", "the plugin set")
	flag.StringVar(&d.dir, "dir", ".cache/demo", "folder for the copy and for logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is what runs, and where its files are.
type demo struct {
	coxswain, envoy, backend string
	config, plugins, dir     string
	started                  []*process
}

func (d *demo) run(ctx context.Context) error {
	if err := d.prepare(); err != nil {
		return err
	}
	died := make(chan error, 8)
	defer d.stop()
	if err := d.start(ctx, died); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	d.tell()
	select {
	case <-ctx.Done():
		fmt.Println("\nstopping")
		return nil
	case err := <-died:
		return err
	}
}

// prepare checks that the ports are free and makes the copy of the configuration that is served.
func (d *demo) prepare() error {
	for _, a := range []string{xds, pages, metrics, gateway, gatewayAdmin, sidecar, sidecarAdmin} {
		l, err := net.Listen("tcp", a)
		if err != nil {
			return fmt.Errorf("the demo needs %s: %w", a, err)
		}
		_ = l.Close()
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(d.dir, "config"), os.DirFS(d.config))
}

// start starts everything, in an order in which nothing has to wait for long, and returns when the gateway and the sidecar serve.
func (d *demo) start(ctx context.Context, died chan error) error {
	fmt.Println("starting two backends and the control plane")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"backend-v1", []string{d.backend, "-version", "v1", "-ports", v1Ports}},
		{"backend-v2", []string{d.backend, "-version", "v2", "-ports", v2Ports}},
		{"coxswain", []string{d.coxswain, "discovery", "--plugins", d.plugins, "--configDir", filepath.Join(d.dir, "config"),
			"--grpcAddr", xds, "--httpAddr", pages, "--monitoringAddr", metrics}},
	} {
		if err := d.launch(c.name, died, c.args...); err != nil {
			return err
		}
	}
	if err := d.wait(ctx, "the control plane", "http://"+pages+"/ready", died); err != nil {
		return err
	}
	fmt.Println("starting an ingress gateway and a client's sidecar, two Envoys")
	if err := d.proxy("gateway", died, "--type", "router", "--namespace", "demo", "--ip", "127.0.0.21",
		"--labels", "istio=ingressgateway", "--admin", gatewayAdmin); err != nil {
		return err
	}
	// No traffic is intercepted on this machine: the sidecar's listeners get ports of their own.
	if err := d.proxy("client", died, "--type", "sidecar", "--namespace", "demo", "--ip", "127.0.0.20",
		"--labels", "app=client", "--interception", "NONE", "--protocol", "delta", "--admin", sidecarAdmin); err != nil {
		return err
	}
	if err := d.wait(ctx, "the gateway", "http://"+gateway, died); err != nil {
		return err
	}
	return d.wait(ctx, "the sidecar", "http://"+sidecar, died)
}

// proxy starts an Envoy with what `coxswain bootstrap` prints for it.
func (d *demo) proxy(name string, died chan error, args ...string) error {
	file := filepath.Join(d.dir, name+".json")
	args = append([]string{"bootstrap", "--name", name, "--xds", xds}, args...)
	if err := output(file, d.coxswain, args...); err != nil {
		return err
	}
	return d.launch("envoy-"+name, died, d.envoy, "-c", file, "--concurrency", "1", "--disable-hot-restart")
}

func (d *demo) launch(name string, died chan error, args ...string) error {
	p, err := launch(filepath.Join(d.dir, name+".log"), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.started = append(d.started, p)
	go func() {
		<-p.ended
		died <- fmt.Errorf("%s has ended (%v); its last lines:\n%s", name, p.err, p.lastLines(10))
	}()
	return nil
}

// wait asks until the answer is 200.
func (d *demo) wait(ctx context.Context, what, url string, died chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s does not serve after %v; see the logs in %s", what, patience, d.dir))
	defer cancel()
	fmt.Printf("waiting until %s serves\n", what)
	remind := time.NewTicker(reminder)
	defer remind.Stop()
	for {
		if ok(ctx, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-died:
			return err
		case <-remind.C:
			fmt.Printf("  ... %s does not serve yet; the logs are in %s\n", what, d.dir)
		case <-time.After(tick):
		}
	}
}

func ok(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// stop ends what was started, the proxies first.
func (d *demo) stop() {
	deadline := time.After(stopping)
	for i := len(d.started) - 1; i >= 0; i-- {
		p := d.started[i]
		if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			continue
		}
		select {
		case <-p.ended:
		case <-deadline:
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
}

func (d *demo) tell() {
	for _, p := range d.started {
		fmt.Printf("%-16s pid %-7d log %s\n", filepath.Base(p.log[:len(p.log)-len(".log")]), p.cmd.Process.Pid, p.log)
	}
	fmt.Printf(`
control plane    xDS %s, pages http://%s/debug, metrics http://%s/metrics
backends         v1 on 127.0.0.1:%s, v2 on 127.0.0.1:%s
gateway          http://%s, Envoy's own pages http://%s
client's sidecar http://%s, Envoy's own pages http://%s

Try, in another terminal:
  for i in $(seq 100); do curl -s -H 'Host: %s' http://%s/; done | sort | uniq -c
  sed -i 's/weight: 80/weight: 0/; s/weight: 20/weight: 100/' %s
  curl -i -H 'Host: %s' http://%s/
  bin/coxswain plugins

The first shows the split of 80 to 20 at the gateway, the second sends everything to v2 within a second. The third shows the header x-patched-by; a WASM module adds
it (examples/patch-header, the last entry of %s). The fourth shows what runs. Ctrl-C stops everything.
`, xds, pages, metrics, v1Ports, v2Ports, gateway, gatewayAdmin, sidecar, sidecarAdmin, host, gateway,
		filepath.Join(d.dir, "config", "routes.yaml"), host, gateway, d.plugins)
}
