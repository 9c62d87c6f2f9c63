// Command mutual runs a mesh without Kubernetes whose two workloads speak mutual TLS: the control
// plane, which signs certificates, and for each workload what gets and renews its certificate, and
// an Envoy. Everything listens on loopback, and stops with Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/examples/internal/stage"
)

// Where things listen. Some of it stands in config/ and echo/ too.
const (
	secure, pages          = "127.0.0.1:15012", "127.0.0.1:8080"
	echo, inbound, calls   = "127.0.0.1:7001", "127.0.0.1:7443", "127.0.0.1:7180"
	webAdmin, clientAdmin  = "127.0.0.1:15100", "127.0.0.1:15101"
	serverName, trustFiles = "istiod.istio-system.svc", "root-cert.pem"
)

func main() {
	// Children die with the thread that started them, so it must last as long as the program.
	runtime.LockOSThread()
	d := demo{}
	flag.StringVar(&d.coxswain, "coxswain", "bin/coxswain", "the control plane")
	flag.StringVar(&d.envoy, "envoy", ".cache/envoy", "Envoy")
	flag.StringVar(&d.echo, "echo", ".cache/bin/echo", "the program of web")
	flag.StringVar(&d.source, "source", "examples/mutual", "folder with plugins.yaml and config, which are copied")
	flag.StringVar(&d.dir, "dir", ".cache/mutual", "folder for the copy, tokens, certificates and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := d.run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "mutual:", err)
		os.Exit(1)
	}
}

// demo is what runs, and where its files are.
type demo struct {
	coxswain, envoy, echo string
	source, dir           string
	*stage.Stage
}

func (d *demo) in(names ...string) string { return filepath.Join(append([]string{d.dir}, names...)...) }

func (d *demo) run(ctx context.Context) error {
	if err := stage.Free(secure, pages, echo, inbound, calls, webAdmin, clientAdmin); err != nil {
		return err
	}
	var err error
	for _, path := range []*string{&d.dir, &d.coxswain, &d.envoy, &d.echo} {
		absolute, failed := filepath.Abs(*path)
		*path, err = absolute, errors.Join(err, failed)
	}
	if err := errors.Join(err, os.RemoveAll(d.dir), os.CopyFS(d.in("config"), os.DirFS(filepath.Join(d.source, "config")))); err != nil {
		return err
	}
	set, err := os.ReadFile(filepath.Join(d.source, "plugins.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.in("plugins.yaml"), set, 0o600); err != nil {
		return err
	}
	d.Stage = stage.New(d.dir)
	defer d.Stop()
	if err := d.tokens(ctx, "web", "client"); err != nil {
		return err
	}
	err = d.Launch("coxswain", d.coxswain, "discovery", "--plugins", d.in("plugins.yaml"), "--configDir",
		d.in("config"), "--grpcAddr=none", "--secureGRPCAddr", secure, "--httpAddr", pages, "--monitoringAddr=")
	if err != nil {
		return err
	}
	if err := d.Wait(ctx, "the control plane", answers("http://"+pages+"/ready")); err != nil {
		return err
	}
	if err := d.Launch("echo", d.echo); err != nil {
		return err
	}
	for _, w := range []struct{ name, ip, admin string }{{"web", "127.0.0.1", webAdmin}, {"client", "127.0.0.2", clientAdmin}} {
		if err := d.workload(ctx, w.name, w.ip, w.admin); err != nil {
			return err
		}
	}
	if err := d.Wait(ctx, "web", answers("http://"+calls)); err != nil {
		return err
	}
	d.Tell()
	fmt.Printf(`
try:
  curl -H 'Host: web.shop' http://%s
      the client's Envoy calls web's, by mutual TLS
  curl http://%s
      plain text: web's Envoy hangs up
  openssl x509 -noout -text -in %s
      who web is
Ctrl-C stops everything.
`, calls, inbound, d.in("web", "cert-chain.pem"))
	select {
	case <-ctx.Done():
		fmt.Println("stopping")
		return nil
	case err := <-d.Died():
		return err
	}
}

// tokens makes one for each service account of the namespace shop. The control plane gets their
// sums alone.
func (d *demo) tokens(ctx context.Context, accounts ...string) error {
	for _, account := range accounts {
		made, err := d.command(ctx, "token", "create", "--file", d.in("tokens.yaml"), "--namespace", "shop", "--service-account", account)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.in(account+".token"), made, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// workload starts what gets a workload's certificates, and its Envoy.
func (d *demo) workload(ctx context.Context, name, ip, admin string) error {
	certs, sds := d.in(name), d.in(name+"-sds")
	err := d.Launch(name+"-certificate", d.coxswain, "certificate", "--addr", secure, "--roots", d.in(trustFiles),
		"--token", d.in(name+".token"), "--dir", certs, "--ttl", "1h", "--follow")
	if err != nil {
		return err
	}
	if err := os.Mkdir(sds, 0o700); err != nil {
		return err
	}
	chain, key := filepath.Join(certs, "cert-chain.pem"), filepath.Join(certs, "key.pem")
	if err := d.Wait(ctx, "the certificate of "+name, func(context.Context) error { _, err := os.Stat(chain); return err }); err != nil {
		return err
	}
	bootstrap, err := d.command(ctx, "bootstrap", "--name", name, "--namespace", "shop", "--ip", ip, "--labels",
		"app="+name, "--interception", "NONE", "--protocol", "delta", "--admin", admin,
		"--metadata", "SERVICE_ACCOUNT="+name, "--certs", certs, "--sds", sds, "--xds", secure, "--xdsName",
		serverName, "--xdsCA", d.in(trustFiles), "--xdsCert", chain, "--xdsKey", key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.in(name+".json"), bootstrap, 0o600); err != nil {
		return err
	}
	return d.Launch(name+"-envoy", d.envoy, "-c", d.in(name+".json"), "--log-level", "warning", "--use-dynamic-base-id", "--concurrency", "1")
}

// command runs coxswain and returns what it prints.
func (d *demo) command(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, d.coxswain, args...)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("coxswain %s: %w: %s", strings.Join(args[:2], " "), err, said.String())
	}
	return out, nil
}

// answers checks that somebody answers with 200, as web.shop where that is asked.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		r.Host = "web.shop"
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", answer.Status, text)
		}
		return nil
	}
}
