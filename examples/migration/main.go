// Command migration runs a service that moves from Dubbo on ZooKeeper to gRPC on Consul: both
// servers and both registries, the control plane, one Envoy before them, and a client that calls
// all the time. Everything listens on loopback, and stops with Ctrl-C.
//
//	migration           runs it
//	migration to 25     sends 25 % of the calls to the successor
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
	"regexp"
	"runtime"
	"strconv"
	"syscall"

	"github.com/coxswain-mesh/coxswain/examples/internal/stage"
)

// Where things listen. Some of it stands in plugins.yaml and config/ too.
const (
	xds, pages                 = "127.0.0.1:15010", "127.0.0.1:8080"
	gateway, gatewayAdmin      = "127.0.0.1:7180", "127.0.0.1:15100"
	zookeeper, consul          = "127.0.0.1:2181", "127.0.0.1:8500"
	legacyPort, successorPort  = 20000, 50051
	consulServer, consulGossip = 8300, 8301
)

func main() {
	// Children die with the thread that started them, so it must last as long as the program.
	runtime.LockOSThread()
	d := demo{}
	flag.StringVar(&d.coxswain, "coxswain", "bin/coxswain", "the control plane")
	flag.StringVar(&d.envoy, "envoy", ".cache/envoy", "Envoy")
	flag.StringVar(&d.programs, "programs", ".cache/bin", "folder of the two services")
	flag.StringVar(&d.zookeeper, "zookeeper", "", "folder with ZooKeeper's libraries")
	flag.StringVar(&d.consul, "consul", "", "Consul")
	flag.StringVar(&d.source, "source", "examples/migration", "folder with plugins.yaml, and with config, which is copied")
	flag.StringVar(&d.dir, "dir", ".cache/migration", "folder for the copy, for logs and for what the registries keep")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := d.do(ctx, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "migration:", err)
		os.Exit(1)
	}
}

// demo is what runs, and where its files are.
type demo struct {
	coxswain, envoy, programs string
	zookeeper, consul         string
	source, dir               string
	*stage.Stage
}

func (d *demo) do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return d.run(ctx)
	case len(args) == 2 && args[0] == "to":
		return d.to(args[1])
	}
	return errors.New("it takes no argument, or: to PERCENT")
}

var weight = regexp.MustCompile(`weight: \d+ # (ZooKeeper|Consul)`)

// to writes the weights.
func (d *demo) to(text string) error {
	percent, err := strconv.Atoi(text)
	if err != nil || percent < 0 || percent > 100 {
		return fmt.Errorf("%q is no percentage", text)
	}
	path := d.routes()
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after := weight.ReplaceAllStringFunc(string(before), func(was string) string {
		of := weight.FindStringSubmatch(was)[1]
		return fmt.Sprintf("weight: %d # %s", map[string]int{"ZooKeeper": 100 - percent, "Consul": percent}[of], of)
	})
	// All at once: nobody reads half of it.
	if err := os.WriteFile(path+".new", []byte(after), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (d *demo) routes() string { return filepath.Join(d.dir, "config", "routes.yaml") }

func (d *demo) run(ctx context.Context) error {
	if err := stage.Free(xds, pages, gateway, gatewayAdmin, zookeeper, consul, at(legacyPort), at(successorPort),
		at(consulServer), at(consulGossip)); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(d.dir, "config"), os.DirFS(filepath.Join(d.source, "config"))); err != nil {
		return err
	}
	d.Stage = stage.New(d.dir)
	defer d.Stop()
	calls, err := newLoad(gateway)
	if err != nil {
		return err
	}
	defer calls.close()
	if err := d.start(ctx, calls); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	d.Tell()
	d.tell()
	ended := make(chan error, 1)
	calling, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- calls.run(calling) }()
	select {
	case err := <-ended:
		fmt.Println("stopping")
		return err
	case err := <-d.Died():
		stop()
		return errors.Join(err, <-ended)
	}
}

func at(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// start starts everything, and returns when the Envoy's calls are answered.
func (d *demo) start(ctx context.Context, calls *load) error {
	fmt.Println("starting ZooKeeper and Consul")
	if err := d.registries(); err != nil {
		return err
	}
	if err := d.Wait(ctx, "ZooKeeper", listens(zookeeper)); err != nil {
		return err
	}
	if err := d.Wait(ctx, "Consul", leads); err != nil {
		return err
	}
	fmt.Println("starting the service as it was, on Dubbo, its successor, and the control plane")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"legacy", []string{filepath.Join(d.programs, "legacy"), "-zookeeper", zookeeper, "-port", strconv.Itoa(legacyPort)}},
		{"successor", []string{filepath.Join(d.programs, "successor"), "-consul", "http://" + consul, "-port", strconv.Itoa(successorPort)}},
		{"coxswain", []string{d.coxswain, "discovery", "--plugins", filepath.Join(d.source, "plugins.yaml"), "--configDir", filepath.Join(d.dir, "config"),
			"--grpcAddr", xds, "--httpAddr", pages, "--monitoringAddr", ""}},
	} {
		if err := d.Launch(c.name, c.args...); err != nil {
			return err
		}
	}
	if err := d.Wait(ctx, "the control plane", ready); err != nil {
		return err
	}
	fmt.Println("starting an Envoy")
	file := filepath.Join(d.dir, "gateway.json")
	if err := stage.Output(file, d.coxswain, "bootstrap", "--name", "gateway", "--xds", xds, "--type", "router", "--namespace", "default", "--ip", "127.0.0.21",
		"--labels", "istio=ingressgateway", "--admin", gatewayAdmin); err != nil {
		return err
	}
	if err := d.Launch("envoy-gateway", d.envoy, "-c", file, "--concurrency", "1", "--disable-hot-restart"); err != nil {
		return err
	}
	return d.Wait(ctx, "the service", func(ctx context.Context) error { _, err := calls.one(ctx); return err })
}

// registries starts both.
func (d *demo) registries() error {
	for name, text := range map[string]string{
		"zoo.cfg": fmt.Sprintf("dataDir=%s\nclientPort=2181\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=1000\n",
			filepath.Join(d.dir, "zookeeper")),
		"consul.json": fmt.Sprintf(
			`{"server": true, "bootstrap_expect": 1, "node_name": "server", "data_dir": %q, "bind_addr": "127.0.0.1", "client_addr": "127.0.0.1",
	"disable_update_check": true, "log_level": "warn", "performance": {"raft_multiplier": 1},
	"ports": {"http": 8500, "https": -1, "dns": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1, "serf_lan": %d, "server": %d}}`,
			filepath.Join(d.dir, "consul"), consulGossip, consulServer,
		),
	} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := d.Launch("zookeeper", "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", d.zookeeper+"/*",
		"org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(d.dir, "zoo.cfg")); err != nil {
		return err
	}
	return d.Launch("consul", d.consul, "agent", "-config-file", filepath.Join(d.dir, "consul.json"))
}

func listens(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
}

func ready(ctx context.Context) error { return get(ctx, "http://"+pages+"/ready") }

// leads is whether Consul takes registrations.
func leads(ctx context.Context) error {
	return get(ctx, "http://"+consul+"/v1/catalog/services?consistent")
}

func get(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

func (d *demo) tell() {
	fmt.Printf(`
client           calls greet.Greeter/Greet at %s all the time, and says below who answers
control plane    xDS %s, pages http://%s/debug
registries       ZooKeeper %s, Consul http://%s/ui
routes           %s

Try, in another terminal:
  make migration-to PERCENT=25
  make migration-to PERCENT=100
  bin/coxswain config

The first sends a quarter of the calls to the successor, the second all. The third shows what is served, and what of the registries is not and why. Ctrl-C stops everything.
`, gateway, xds, pages, zookeeper, consul, d.routes())
}
