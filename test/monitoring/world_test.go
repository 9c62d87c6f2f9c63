package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var program string

func TestMain(m *testing.M) { mesh.Plain(&program, m.Run) }

const (
	alerts    = "../../deploy/monitoring/alerts.yaml"
	dashboard = "../../deploy/monitoring/dashboard.json"
)

const service = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.NUMBER}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example]
  http: [{timeout: NUMBERs, route: [{destination: {host: cart.example}}]}]
`

const set = `plugins:
  - {name: files, kind: config, builtin: config/file, config: {dir: DIR}}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: serviceentry, kind: registry, builtin: registry/serviceentry}
  - {name: istio, kind: generator, builtin: generator/istio}
  - {name: who, kind: authenticator, builtin: authenticator/certificate}
  - {name: ca, kind: controller, builtin: controller/ca}
  - name: fixed
    kind: registry
    builtin: registry/memory
    config:
      services:
        - host: fixed.example
          ports: [{number: 80, name: http, protocol: HTTP}]
          endpoints: [{address: 10.2.0.1, port: 80}]
`

const broken = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: broken, namespace: shop}
spec: {servers: [{port: {number: 70000, name: http, protocol: HTTP}, hosts: ["*"]}]}
`

// world is a control plane that has something to count: a proxy that accepts clusters and refuses
// listeners, an object that is wrong, and edits.
type world struct {
	*mesh.Plane
	dir   string
	edits int
}

func start(t *testing.T, flags ...string) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	w.write(t, "broken.yaml", broken)
	w.edit(t)
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(set, "DIR", w.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Plane = mesh.Start(t, program, "", append([]string{"--plugins", file}, flags...)...)
	w.Ready(t)
	w.proxy(t)
	return w
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// edit changes an endpoint and a route.
func (w *world) edit(t *testing.T) {
	t.Helper()
	w.edits++
	w.write(t, "cart.yaml", strings.ReplaceAll(service, "NUMBER", fmt.Sprint(w.edits%200+1)))
}

// proxy connects until the test ends.
func (w *world) proxy(t *testing.T) {
	t.Helper()
	conn, err := grpc.NewClient(w.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const clusters, listeners = "type.googleapis.com/envoy.config.cluster.v3.Cluster", "type.googleapis.com/envoy.config.listener.v3.Listener"
	node := &corev3.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"}
	const endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	names := map[string][]string{endpoints: {"outbound|80||cart.example"}}
	for _, typeURL := range []string{clusters, endpoints, listeners} {
		if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: names[typeURL]}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			r := &discoveryv3.DiscoveryRequest{TypeUrl: answer.TypeUrl, ResourceNames: names[answer.TypeUrl],
				VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce}
			if answer.TypeUrl == listeners {
				r.VersionInfo, r.ErrorDetail = "", &status.Status{Message: "virtualOutbound: I won't"}
			}
			_ = stream.Send(r)
		}
	}()
}

// scrape returns what /metrics has once a line of it begins with each of some expressions.
func (w *world) scrape(t *testing.T, until ...string) (families map[string]*dto.MetricFamily, text string) {
	t.Helper()
	var wanted []*regexp.Regexp
	for _, u := range until {
		wanted = append(wanted, regexp.MustCompile("(?m)^"+u))
	}
	wait.For(t, fmt.Sprintf("/metrics has %q", until), func() (err error) {
		if text, err = page.Get(w.Monitoring, "/metrics"); err != nil {
			return err
		}
		for _, w := range wanted {
			if !w.MatchString(text) {
				return fmt.Errorf("no %q", w)
			}
		}
		return nil
	})
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families, text
}

// istiods are the queries of Istio's dashboard for its control plane that are about what a control
// plane counts itself.
func istiods(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/istiod-dashboard.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// panels of a dashboard of Grafana's.
type panels []struct {
	Title, Type, Description string
	Targets                  []struct{ Expr string }
	Panels                   panels
}

func (p panels) queries() (all []string) {
	for _, one := range p {
		for _, t := range one.Targets {
			all = append(all, t.Expr)
		}
		all = append(all, one.Panels.queries()...)
	}
	return all
}

// ours is the dashboard of deploy/monitoring.
func ours(t *testing.T) panels {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels panels }
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// documented are the labels of the metrics that docs/metrics.md lists.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return all
}
