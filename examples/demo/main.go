// Command demo runs a mesh on this machine: the control plane, two versions of a service, an
// ingress gateway and a client's sidecar, both real Envoys. Everything listens on loopback
// addresses, and stops with Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/coxswain-mesh/coxswain/examples/internal/stage"
)

const host = "hello.example"

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
	ports                    ports
	*stage.Stage
}

func (d *demo) run(ctx context.Context) error {
	if err := d.prepare(); err != nil {
		return err
	}
	d.Stage = stage.New(d.dir)
	defer d.Stop()
	if err := d.start(ctx); err != nil {
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
	case err := <-d.Died():
		return err
	}
}

// prepare finds ports and makes the copy of the configuration that is served.
func (d *demo) prepare() error {
	if err := d.ports.find(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	return d.ports.copy(d.config, filepath.Join(d.dir, "config"))
}

// start starts everything, in an order in which nothing has to wait for long, and returns when the
// gateway and the sidecar serve.
func (d *demo) start(ctx context.Context) error {
	fmt.Println("starting two backends and the control plane")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"backend-v1", []string{d.backend, "-version", "v1", "-ports", d.ports.list(v1a, v1b)}},
		{"backend-v2", []string{d.backend, "-version", "v2", "-ports", d.ports.list(v2a, v2b)}},
		{"coxswain", []string{d.coxswain, "discovery", "--plugins", d.plugins, "--configDir", filepath.Join(d.dir, "config"),
			"--grpcAddr", d.ports.at(xds), "--httpAddr", d.ports.at(pages), "--monitoringAddr", d.ports.at(metrics)}},
	} {
		if err := d.Launch(c.name, c.args...); err != nil {
			return err
		}
	}
	if err := d.Wait(ctx, "the control plane", serves("http://"+d.ports.at(pages)+"/ready")); err != nil {
		return err
	}
	fmt.Println("starting an ingress gateway and a client's sidecar, two Envoys")
	if err := d.proxy("gateway", "--type", "router", "--namespace", "demo", "--ip", "127.0.0.21",
		"--labels", "istio=ingressgateway", "--admin", d.ports.at(gatewayAdmin)); err != nil {
		return err
	}
	// No traffic is intercepted on this machine: the sidecar's listeners get ports of their own.
	if err := d.proxy("client", "--type", "sidecar", "--namespace", "demo", "--ip", "127.0.0.20",
		"--labels", "app=client", "--interception", "NONE", "--protocol", "delta", "--admin",
		d.ports.at(sidecarAdmin)); err != nil {
		return err
	}
	if err := d.Wait(ctx, "the gateway", serves("http://"+d.ports.at(gateway))); err != nil {
		return err
	}
	return d.Wait(ctx, "the sidecar", serves("http://"+d.ports.at(sidecar)))
}

// proxy starts an Envoy with what `coxswain bootstrap` prints for it.
func (d *demo) proxy(name string, args ...string) error {
	file := filepath.Join(d.dir, name+".json")
	args = append([]string{"bootstrap", "--name", name, "--xds", d.ports.at(xds)}, args...)
	if err := stage.Output(file, d.coxswain, args...); err != nil {
		return err
	}
	return d.Launch("envoy-"+name, d.envoy, "-c", file, "--concurrency", "1", "--disable-hot-restart")
}

// serves returns a check that the answer is 200.
func serves(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}

func (d *demo) tell() {
	d.Tell()
	at := d.ports.at
	if pages != d.ports[pages] {
		fmt.Printf("\nfor commands such as bin/coxswain config: export COXSWAIN_ADDR=%s\n", at(pages))
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
`, at(xds), at(pages), at(metrics), d.ports.list(v1a, v1b), d.ports.list(v2a, v2b), at(gateway), at(gatewayAdmin),
		at(sidecar), at(sidecarAdmin), host, at(gateway), filepath.Join(d.dir, "config", "routes.yaml"), host,
		at(gateway), d.plugins)
}
