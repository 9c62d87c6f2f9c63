package beside

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	admin "github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
)

// state is what istioctl is asked about.
const state = `
{apiVersion: v1, kind: Node, metadata: {name: one, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {clusterIP: 10.96.7.7, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop, labels: {app: web, version: v1}}
spec: {serviceAccountName: web, nodeName: one, containers: [{name: web, image: web}]}
status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}, nodeName: one, targetRef: {kind: Pod, name: one, namespace: shop}}]
---
apiVersion: extensions.istio.io/v1alpha1
kind: TrafficExtension
metadata: {name: wasm, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, wasm: {url: "https://wasm.example/filter.wasm", sha256: "0000000000000000000000000000000000000000000000000000000000000000"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "enableAutoMtls: false", meshNetworks: "networks: {far: {endpoints: [{fromRegistry: far}], gateways: [{address: 192.0.2.9, port: 15443}]}}"}}
---
{apiVersion: telemetry.istio.io/v1, kind: Telemetry, metadata: {name: little, namespace: shop}, spec: {tracing: [{randomSamplingPercentage: 10}]}}
---
{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: plain, namespace: istio-system}, spec: {mtls: {mode: DISABLE}}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: stock, namespace: istio-system}
spec:
  configPatches: # an Envoy that isn't Istio's build refuses these
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.metadata_exchange}}}}, patch: {operation: REMOVE}}
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.stats}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.alpn}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.metadata_exchange}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.stats}}}}}, patch: {operation: REMOVE}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: out, namespace: shop}
spec: {hosts: [out.example], addresses: [10.9.0.1], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.244.7.7}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: out, namespace: shop}
spec: {host: out.example, subsets: [{name: v1, labels: {version: v1}}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: allow, namespace: shop}
spec: {rules: [{from: [{source: {namespaces: [shop]}}]}]}
`

// follow opens a proxy's stream, as an agent's, which acknowledges what it asks for and stays open.
func (s *server) follow(t *testing.T, c caller) {
	t.Helper()
	conn, _ := s.dial(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	asks := []*discovery.DiscoveryRequest{
		{TypeUrl: clusters}, {TypeUrl: envoyType("listener.v3.Listener")},
		{TypeUrl: envoyType("route.v3.RouteConfiguration"), ResourceNames: []string{"80"}},
		{TypeUrl: envoyType("endpoint.v3.ClusterLoadAssignment"), ResourceNames: []string{webCluster}},
		{TypeUrl: envoyType("core.v3.TypedExtensionConfig"), ResourceNames: []string{"extensions.istio.io/trafficextension/shop.wasm"}},
		{TypeUrl: "type.googleapis.com/istio.networking.nds.v1.NameTable"},
	}
	for _, ask := range asks {
		ask.Node = c.proxy(t)
		if err := stream.Send(ask); err != nil {
			t.Fatal(err)
		}
		m, err := stream.Recv()
		if err != nil || m.TypeUrl != ask.TypeUrl {
			t.Fatal(s.name, m, err)
		}
		ask.VersionInfo, ask.ResponseNonce = m.VersionInfo, m.Nonce
		if err := stream.Send(ask); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
}

// webCluster is the cluster of the service web.
const webCluster = "outbound|80||web.shop.svc.cluster.local"

// envoyType is the URL of a type of Envoy's configuration.
func envoyType(name string) string { return "type.googleapis.com/envoy.config." + name }

// certDir is a folder as istioctl wants it (--cert-dir), of the account that it says it is of.
func (w *world) certDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := w.authority.named(t, "spiffe://cluster.local/ns/istio-system/sa/default")
	key, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"cert-chain.pem": encoded("CERTIFICATE", c.Certificate[0]), "key.pem": encoded("EC PRIVATE KEY", key),
		"root-cert.pem": encoded("CERTIFICATE", w.authority.certificate.Raw),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unsteady is what is never the same: times, nonces, peers.
var unsteady = regexp.MustCompile(`"(sentTime|connectedAt|address|[a-z]*_?(sent|acked)|connectionId)": ?"[^"]*"`)

// unknown are fields of pages that docs/differences.md says are not there, by their names.
var unknown = map[string][]string{
	"registryz":      {"Type", "ExternalName", "ObjectName", "Visibility", "PassthroughTargetPorts", "DNSConnectStrategy", "ResourceVersion", "clusterVIPs"},
	"instancesz":     {"Type", "ExternalName", "ObjectName", "Visibility", "PassthroughTargetPorts", "DNSConnectStrategy", "ResourceVersion"},
	"adsz":           {"labels", "locality", "PROXY_CONFIG"},
	"config_dump":    {"versionInfo", "lastUpdated"},
	"endpointShardz": {"LegacyClusterPortKey", "SendUnhealthyEndpoints", "topology.istio.io/network"},
	"configz":        {"uid", "resourceVersion", "generation", "annotations"},
	"authorizationz": {"annotations"},
}

// pickers leave out of pages what docs/differences.md says that the other doesn't show.
var pickers = map[string]func(any) any{
	"resourcesz": func(v any) any { // kinds of Istio's own
		return slices.DeleteFunc(v.([]any), func(kind any) bool { return strings.HasSuffix(kind.(map[string]any)["group"].(string), "k8s.io") })
	},
	"config_dump": camel,
}

// without takes fields out of JSON, at any depth.
func without(v any, names []string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range names {
			delete(v, name)
		}
		for key := range v {
			v[key] = without(v[key], names)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], names)
		}
	}
	return v
}

// inOrder sorts the lists in JSON by what is in them: their order means nothing.
func inOrder(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = inOrder(v[key])
		}
	case []any:
		for i := range v {
			v[i] = inOrder(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return v
}

// istioctl runs Istio's command about both.
type istioctl struct {
	*world
	bin, dir string
	// real are Envoys, by who serves them.
	real map[*server]*envoy.Envoy
}

func (c istioctl) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "istioctl"), append(args, "--kubeconfig", c.cluster.Kubeconfig)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("istioctl %s: %w: %s%s", strings.Join(args, " "), err, out, complaint.String())
	}
	return string(out), err
}

// ask has it ask a control plane by xDS.
func (c istioctl) ask(t *testing.T, s *server, args ...string) (string, error) {
	t.Helper()
	text, err := c.run(t, append(args, "--xds-address", s.secure, "--cert-dir", c.dir, "--authority", "istiod.istio-system.svc")...)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return text, err
}

// page is a debug page, without what is never the same and what docs/differences.md lists.
func (c istioctl) page(t *testing.T, s *server, name string) (v any, err error) {
	t.Helper()
	text, err := c.ask(t, s, "x", "internal-debug", name)
	if err != nil {
		return nil, err
	}
	if v, err = shown(name, text); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %s", name, s.name, err, text)
	}
	return v, nil
}

// shown is what is compared of a page.
func shown(name, text string) (v any, err error) {
	if err := json.Unmarshal([]byte(unsteady.ReplaceAllString(text, `"$1": "…"`)), &v); err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(name, "?")
	if of := pickers[kind]; of != nil {
		v = of(v)
	}
	return inOrder(without(v, unknown[kind])), nil
}

// TestIstioctl: Istio's own command prints for Coxswain what it prints for istiod, but for what
// docs/differences.md lists.
func TestIstioctl(t *testing.T) {
	need.All(t)
	w := newWorld(t)
	c := istioctl{w, program.Built(t, "test/peer", "peer", "istioctl"), w.certDir(t), map[*server]*envoy.Envoy{}}
	w.env = []string{"PILOT_ENABLE_METADATA_EXCHANGE=false"} // Istio's build of Envoy alone has it
	w.cluster.Apply(t, state)
	w.start(t, false)
	proxy := shows(w.authority.named(t, web)).as("shop/web", "ISTIO_VERSION", "1.31.0")
	proxy.metadata["PROXY_CONFIG"] = map[string]any{"discoveryAddress": "istiod.istio-system.svc:15012"} // istiod tells proxies from others by it
	proxy.node = "two.shop"                                                                              // others have come as one.shop
	proxy.metadata["LABELS"] = map[string]any{"app": "web", "version": "v1"}
	for _, s := range []*server{w.istiod, w.coxswain} {
		s.follow(t, proxy)
	}
	c.envoys(t)
	t.Run("pages", c.pages)
	t.Run("HTTP", c.byHTTP)
	t.Run("proxy-status", c.proxyStatus)
	t.Run("proxy-config", c.proxyConfig)
}

// pageNames are the pages that are compared.
var pageNames = []string{
	"syncz", "connections", "adsz", "registryz", "endpointShardz", "configz", "resourcesz", "authorizationz",
	"telemetryz", "mesh", "networkz", "clusterz", "instancesz",
	"edsz?proxyID=two.shop", "ndsz?proxyID=two.shop", "config_dump?proxyID=real.shop&include_eds",
}

// byHTTP: both HTTP ports have the same pages, for callers of this machine.
func (c istioctl) byHTTP(t *testing.T) {
	get := func(address, name string) any {
		t.Helper()
		text, err := admin.Get(address, "/debug/"+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		v, err := shown(name, text)
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		return v
	}
	for _, name := range pageNames {
		istiod := get(c.process.HTTP, name)
		for _, address := range []string{c.plane.HTTP, c.plane.Monitoring} {
			if difference := cmp.Diff(istiod, get(address, name)); difference != "" {
				t.Errorf("%s at %s: istiod (-), coxswain (+): %s", name, address, difference)
			}
		}
	}
}

func (c istioctl) pages(t *testing.T) {
	for _, name := range pageNames {
		istiod, err := c.page(t, c.istiod, name)
		if err != nil {
			t.Error(err)
			continue
		}
		coxswain, err := c.page(t, c.coxswain, name)
		if err != nil {
			t.Error(err)
			continue
		}
		if difference := cmp.Diff(istiod, coxswain); difference != "" {
			t.Errorf("%s: istiod (-), coxswain (+): %s", name, difference)
		}
		if text := fmt.Sprint(istiod); len(text) < len("map[a:b]") {
			t.Errorf("%s shows nothing that could be compared: %s", name, text)
		}
	}
	// as docs/differences.md says
	if text, err := c.ask(t, c.istiod, "x", "internal-debug", "ecdsz?proxyID=two.shop"); err != nil || !strings.Contains(text, "proto: not found") {
		t.Errorf("ecdsz of istiod: %v %s", err, text)
	}
	if text, err := c.ask(t, c.coxswain, "x", "internal-debug", "ecdsz?proxyID=two.shop"); err != nil ||
		!strings.Contains(text, "https://wasm.example/filter.wasm") {
		t.Errorf("ecdsz of Coxswain: %v %s", err, text)
	}
	c.list(t)
}

// list: istiod's pages are there, but for those that docs/differences.md lists.
func (c istioctl) list(t *testing.T) {
	t.Helper()
	pages := map[string][]string{}
	for _, s := range []*server{c.istiod, c.coxswain} {
		text, err := c.ask(t, s, "x", "internal-debug", "list")
		var names []string
		if err == nil {
			err = json.Unmarshal([]byte(text), &names)
		}
		if err != nil || len(names) < 10 {
			t.Fatalf("list of %s: %v %s", s.name, err, text)
		}
		pages[s.name] = names
	}
	for _, name := range pages["istiod"] {
		name, _, _ = strings.Cut(name, "?") // istiod lists some with what may be asked
		if !slices.Contains(pages["coxswain"], name) && !absent(t, name) {
			t.Errorf("there is no page %s, and docs/differences.md doesn't say so", name)
		}
	}
}

// absent reports whether docs/differences.md says that there is no page of a name.
func absent(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(text), "\n| pages that there are not | ")
	row, _, _ = strings.Cut(row, ";")
	return strings.Contains(row, "`"+name+"`")
}

func (c istioctl) proxyStatus(t *testing.T) {
	statuses := map[string][]string{}
	for _, s := range []*server{c.istiod, c.coxswain} {
		text, err := c.ask(t, s, "proxy-status")
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(text) {
			// Both list the one that says its version; the column of the control plane is its name.
			if f := strings.Fields(line); len(f) > 3 && f[3] == "1.31.0" && f[2] != "INVALID" {
				statuses[s.name] = append(statuses[s.name], strings.Join(slices.Delete(f, 2, 3), " "))
			}
		}
		text, err = c.ask(t, s, "x", "version")
		if err != nil || !regexp.MustCompile(`control plane version: \S+\ndata plane version: .*1\.31\.0 \(2 proxies\)`).MatchString(text) {
			t.Errorf("version of %s: %v %s", s.name, err, text)
		}
	}
	for name, got := range statuses {
		if want := []string{
			"real.shop Kubernetes 1.31.0 4 (CDS,LDS,EDS,RDS)",
			"two.shop Kubernetes 1.31.0 6 (CDS,LDS,EDS,RDS,ECDS,NDS)",
		}; !slices.Equal(got, want) {
			t.Errorf("proxy-status of %s: %q", name, got)
		}
	}
	if !listedIn(t, "`istioctl proxy-status`") {
		t.Error("docs/differences.md has no row about proxy-status")
	}
}
