package parity

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The world is what random meshes have in common: namespaces, nodes, Services with pods and slices
// of all sorts. It stays while meshes come and go.

const rootNamespace = "istio-system"

// service is one of the world.
type service struct {
	namespace, name string
	ports           []string // NAME NUMBER TARGET
	address         string   // its spec's fields
	pods            int
	subnet          string // of its pods
	family          string
	labels          string // more labels of its pods
}

var services = []service{
	{"alpha", "web", []string{"http 80 8080", "grpc 7070 7070", "tcp 9000 9000", "https 443 8443"}, "clusterIP: 10.96.1.1", 3, "10.40.1", "IPv4", ""},
	{"alpha", "api", []string{"http 80 8080", "any 8000 8000", "http2-x 8081 8081"}, "clusterIP: 10.96.1.2", 2, "10.40.2", "IPv4", ""},
	{"alpha", "db", []string{"mysql 3306 3306", "tcp 5432 5432", "mongo 27017 27017", "redis 6379 6379"}, "clusterIP: 10.96.1.3", 1, "10.40.3", "IPv4", ""},
	{"alpha", "head", []string{"http 80 8080", "tcp 9090 9090"}, "clusterIP: None", 2, "10.40.4", "IPv4", ""},
	{"alpha", "six", []string{"http 80 8080", "tcp 9000 9000"}, "clusterIP: None", 2, "fd00:40:5:", "IPv6", ""},
	{"alpha", "far", []string{"http 80 8080", "tcp 9000 9000"}, "clusterIP: 10.96.1.6", 2, "10.40.6", "IPv4", ", topology.istio.io/network: net2"},
	{"alpha", "egress", []string{"http 80 8080", "tls 443 8443"}, "clusterIP: 10.96.1.7", 1, "10.40.7", "IPv4", ", istio: egressgateway"},
	{"beta", "web", []string{"http 80 8080", "tcp 9000 9000"}, "clusterIP: 10.96.2.1", 2, "10.41.1", "IPv4", ""},
	{"beta", "shop", []string{"http 80 8080", "grpc 9000 9000"}, "clusterIP: 10.96.2.2", 2, "10.41.2", "IPv4", ""},
	{
		"beta", "tools",
		[]string{"http 9411 8080", "grpc 4317 4317", "grpc-authz 9001 9001", "http-authz 8000 8000"},
		"clusterIP: 10.96.2.3", 1, "10.41.3", "IPv4", "",
	},
	{rootNamespace, "gateway", []string{"http 80 8080", "https 443 8443", "tls 15443 15443", "tcp 31400 31400"},
		"clusterIP: 10.96.9.1, type: LoadBalancer", 1, "10.49.1", "IPv4", ", istio: ingressgateway"},
}

// localities are those of the nodes node-0, node-1 and so on.
var localities = []string{"r1/z1", "r1/z2", "r2/z1"}

// world is its manifests.
func world() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("apiVersion: v1\nkind: Namespace\nmetadata: {name: alpha, labels: {team: a}}")
	add("apiVersion: v1\nkind: Namespace\nmetadata: {name: beta, labels: {team: b}}")
	for i, l := range localities {
		region, zone, _ := strings.Cut(l, "/")
		add("apiVersion: v1\nkind: Node\nmetadata: {name: node-%d, labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: %s}}",
			i, region, zone)
	}
	for _, s := range services {
		var ports, targets []string
		for _, p := range s.ports {
			var name string
			var number, target int
			_, _ = fmt.Sscan(p, &name, &number, &target)
			protocol := ""
			if name == "http2-x" {
				protocol = ", appProtocol: http2"
			}
			ports = append(ports, fmt.Sprintf("{name: %s, port: %d, targetPort: %d%s}", name, number, target, protocol))
			targets = append(targets, fmt.Sprintf("{name: %s, port: %d}", name, target))
		}
		add("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s, labels: {app: %[1]s}}\nspec: {selector: {app: %[1]s}, %[3]s, ports: [%[4]s]}",
			s.name, s.namespace, s.address, strings.Join(ports, ", "))
		if strings.Contains(s.address, "LoadBalancer") {
			out[len(out)-1] += "\nstatus: {loadBalancer: {ingress: [{ip: 198.51.100.7}]}}"
		}
		var endpoints []string
		for i := range s.pods {
			pod, address := fmt.Sprintf("%s-%d", s.name, i+1), s.pod(i+1)
			labels := fmt.Sprintf("app: %s, version: v%d, security.istio.io/tlsMode: istio%s", s.name, i%2+1, s.labels)
			if s.name == "db" {
				labels = "app: db, version: v1"
			}
			add("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {%s}}\nspec: {nodeName: "+
				"node-%d, serviceAccountName: %s, containers: [{name: app, image: app}]}\n"+
				"status: {phase: Running, podIP: '%s', podIPs: [{ip: '%[6]s'}], conditions: [{type: Ready, status: 'True'}]}",
				pod, s.namespace, labels, i%3, s.name, address)
			endpoints = append(endpoints,
				fmt.Sprintf("{addresses: ['%s'], conditions: {ready: true, serving: true}, nodeName: node-%d, targetRef: {kind: Pod, name: %s, namespace: %s}}",
					address, i%3, pod, s.namespace))
		}
		add("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s, namespace: %s, labels: "+
			"{kubernetes.io/service-name: %[1]s}}\naddressType: %[3]s\nendpoints: [%[4]s]\nports: [%[5]s]",
			s.name, s.namespace, s.family, strings.Join(endpoints, ", "), strings.Join(targets, ", "))
	}
	add("apiVersion: v1\nkind: Pod\nmetadata: {name: client, namespace: alpha, labels: {app: client, version: " +
		"v1}}\nspec: {nodeName: node-0, serviceAccountName: client, containers: [{name: app, image: app}]}\n" +
		"status: {phase: Running, podIP: 10.40.0.9, podIPs: [{ip: 10.40.0.9}], conditions: [{type: Ready, status: 'True'}]}")
	return strings.Join(out, "\n---\n")
}

// pod is the address of the nth one of a service.
func (s service) pod(n int) string {
	if s.family == "IPv6" {
		return fmt.Sprintf("%s:%d", s.subnet, n)
	}
	return fmt.Sprintf("%s.%d", s.subnet, n)
}

// proxy is one that asks, as case.yaml holds it.
type proxy struct {
	Name string         `json:"name"`
	Node map[string]any `json:"node"`
	NDS  bool           `json:"nds,omitempty"`
}

func newProxy(kind, name, app, namespace, addresses string, labels map[string]any) proxy {
	first, _, _ := strings.Cut(addresses, ",")
	labels["app"] = app
	return proxy{Name: name, Node: map[string]any{
		"id":      fmt.Sprintf("%s~%s~%s.%s~%[4]s.svc.cluster.local", kind, first, name, namespace),
		"cluster": app + "." + namespace,
		"metadata": map[string]any{
			"NAME": name, "NAMESPACE": namespace, "OWNER": fmt.Sprintf("kubernetes://apis/apps/v1/namespaces/%s/deployments/%s", namespace, app),
			"WORKLOAD_NAME": app, "SERVICE_ACCOUNT": app, "CLUSTER_ID": "Kubernetes", "MESH_ID": "cluster.local",
			"ISTIO_VERSION": "1.31.0", "INSTANCE_IPS": addresses,
			"LABELS": labels, "ENVOY_STATUS_PORT": 15021.0, "ENVOY_PROMETHEUS_PORT": 15090.0, "PILOT_SAN": []any{"istiod.istio-system.svc"},
		},
	}}
}

// proxies are some of the world, with some settings of their own.
func (g *gen) proxies() []proxy {
	all := []proxy{
		newProxy("sidecar", "client", "client", "alpha", "10.40.0.9", map[string]any{"version": "v1"}),
		newProxy("sidecar", "web-1", "web", "alpha", "10.40.1.1", map[string]any{"version": "v1"}),
		newProxy("sidecar", "api-2", "api", "alpha", "10.40.2.2", map[string]any{"version": "v2"}),
		newProxy("sidecar", "shop-1", "shop", "beta", "10.41.2.1", map[string]any{"version": "v1"}),
		newProxy("sidecar", "db-1", "db", "alpha", "10.40.3.1", map[string]any{"version": "v1"}),
		newProxy("sidecar", "six-1", "six", "alpha", "fd00:40:5::1", map[string]any{"version": "v1"}),
		newProxy("sidecar", "vm-1", "vm", "alpha", "10.42.0.1", map[string]any{"version": "v1"}),
		newProxy("sidecar", "both", "both", "alpha", "10.42.0.2,fd00:42::2", map[string]any{}),
		newProxy("sidecar", "six-both", "both", "beta", "fd00:42::3,10.42.0.3", map[string]any{}),
		newProxy("router", "gateway-1", "gateway", rootNamespace, "10.49.1.1", map[string]any{"istio": "ingressgateway"}),
		newProxy("router", "egress-1", "egress", "alpha", "10.40.7.1", map[string]any{"istio": "egressgateway"}),
	}
	bare := proxy{Name: "bare", Node: map[string]any{"id": "sidecar~fd00:42::9~bare.alpha~alpha.svc.cluster.local", "cluster": "bare"}}
	all = append(all, bare)
	g.r.Shuffle(len(all)-1, func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out []proxy
	gateway := 0
	for i, p := range all {
		router := strings.HasPrefix(p.Node["id"].(string), "router")
		if router && gateway == 0 {
			gateway++
		} else if len(out) >= 4 && (i < len(all)-1 || g.r.IntN(10) > 0) {
			continue
		}
		if p.Name != "bare" {
			g.equip(p.Node["metadata"].(map[string]any))
		}
		p.NDS = g.chance(0.3) && !router // docs/differences.md
		out = append(out, p)
	}
	return out
}

// settingsOfProxies are what proxies say of themselves.
var settingsOfProxies = map[string][]any{
	"INTERCEPTION_MODE": {"REDIRECT", "TPROXY", "NONE"}, "DNS_CAPTURE": {"true"}, "DNS_AUTO_ALLOCATE": {"true"}, "NETWORK": {"net1", "net2"}, "HTTP10": {"1"},
	"IDLE_TIMEOUT": {"30s"}, "UNPRIVILEGED_POD": {"true"}, "TLS_SERVER_CERT_CHAIN": {"/certs/s.pem"}, "TLS_CLIENT_ROOT_CERT": {"/certs/r.pem"},
	"CLUSTER_ID": {"other"}, "STS": {"true"}, "ISTIO_VERSION": {"1.30.0", "1.22.1"},
	"INBOUND_LISTENER_EXACT_BALANCE": {"true"}, "OUTBOUND_LISTENER_EXACT_BALANCE": {"true"},
	"HTTP_PROXY_PORT": {"15080"}, "CREDENTIAL_SOCKET_EXISTS": {"true"}, "PROXY_VIA_AGENT": {"true"}, "MESH_ID": {"m"},
	"STATS_INCLUSION_PREFIXES": {"x"}, "DISABLE_METADATA_EXCHANGE": {"true"}, "PROXY_CONFIG": {"made"}, "METADATA_DISCOVERY": {"true"},
}

func (g *gen) equip(metadata map[string]any) {
	for _, name := range ordered(settingsOfProxies) {
		if !g.chance(0.08) {
			continue
		}
		v := pick(g.r, settingsOfProxies[name])
		if name == "PROXY_CONFIG" {
			v = map[string]any{}
			if g.chance(0.7) {
				v = g.proxyConfig()
			}
		}
		metadata[name] = v
	}
}

func pick[V any](r *rand.Rand, list []V) V { return list[r.IntN(len(list))] }
