package kube_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/agent"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	peers "github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const (
	clusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	healthURL   = "type.googleapis.com/istio.v1.HealthInformation"
	// bySelector is a service whose endpoints are entries of the app.
	bySelector = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: machines, namespace: shop}
spec: {hosts: [machines.example], location: MESH_INTERNAL, resolution: STATIC, workloadSelector: {labels: {app: machine}}, ports: [{number: 80, name: http, protocol: HTTP}]}`
)

// groupOf is a WorkloadGroup of the namespace shop for an account.
func groupOf(name, account string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: %s, namespace: shop}
spec:
  metadata: {labels: {app: machine}, annotations: {of: its group}}
  template: {serviceAccount: %s, network: there, ports: {http: 8080}}`, name, account)
}

// machines are virtual machines whose agents connect to control planes of one cluster.
type machines struct {
	t         *testing.T
	cluster   *kube.Cluster
	authority *authority.Authority
	dir       string
	args      []string
}

// newMachines has a cluster, and the set with exactly the rights of deploy/.
func newMachines(t *testing.T, flags ...string) *machines {
	t.Helper()
	c := kube.Start(t, flags...)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "registration.yaml"))
	m := &machines{t: t, cluster: c, authority: authority.New(t), dir: t.TempDir()}
	set, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const builtin = "builtin: controller/registration\n"
	if !strings.Contains(string(set), builtin) {
		t.Fatalf("there is no %s", builtin)
	}
	put(t, filepath.Join(m.dir, "plugins.yaml"), strings.Replace(string(set), builtin, builtin+"    config: {grace: 2s, lease: 2s, limits: {group: 3}}\n", 1))
	put(t, filepath.Join(m.dir, "kubeconfig"), c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	m.args = []string{"--plugins", filepath.Join(m.dir, "plugins.yaml"), "--kubeconfig", filepath.Join(m.dir, "kubeconfig")}
	return m
}

// plane starts a replica.
func (m *machines) plane(args ...string) *secured {
	m.t.Helper()
	s := &secured{authority: m.authority, address: wait.Address(m.t), dir: m.t.TempDir()}
	own := s.issue(m.t, "plane", "")
	s.plane = mesh.Start(m.t, program, "", slices.Concat(m.args, args, []string{
		"--secureGRPCAddr", s.address, "--tlsCertFile", own + "/cert-chain.pem", "--tlsKeyFile", own + "/key.pem", "--caCertFile", own + "/root-cert.pem",
	})...)
	s.plane.Ready(m.t)
	return s
}

// machine is an agent that is connected.
type machine struct {
	t      *testing.T
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	close  func()

	mu        sync.Mutex
	endpoints []string
	err       error
}

// who is an agent, from an address.
type who struct {
	from, claims, account, group string
	plain, checked               bool
}

// connect connects an agent, which follows the endpoints of the service.
func (m *machines) connect(s *secured, w who) *machine {
	m.t.Helper()
	dir, address, creds := m.t.TempDir(), s.address, insecure.NewCredentials()
	if w.plain {
		address = s.plane.XDS
	} else {
		m.authority.Issue(m.t, dir, "spiffe://cluster.local/ns/shop/sa/"+w.account)
		own, err := tls.LoadX509KeyPair(dir+"/cert-chain.pem", dir+"/key.pem")
		if err != nil {
			m.t.Fatal(err)
		}
		roots, err := os.ReadFile(dir + "/root-cert.pem")
		if err != nil {
			m.t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		creds = credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "127.0.0.1"})
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(w.from)}}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to)
		}))
	if err != nil {
		m.t.Fatal(err)
	}
	fields := map[string]any{
		"NAMESPACE": "shop", "SERVICE_ACCOUNT": w.account, "AUTO_REGISTER_GROUP": w.group, "INSTANCE_IPS": w.claims, "LABELS": map[string]any{"version": "v1"},
	}
	if w.checked {
		fields["PROXY_CONFIG"] = map[string]any{"readinessProbe": map[string]any{"httpGet": map[string]any{"port": 80}}}
	}
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		m.t.Fatal(err)
	}
	v := &machine{t: m.t, close: func() { _ = conn.Close() }}
	m.t.Cleanup(v.close)
	if v.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	node := &corev3.Node{
		Id: "sidecar~" + w.claims + "~vm.shop~shop.svc.cluster.local", Metadata: metadata, Locality: &corev3.Locality{Region: "eu", Zone: "eu-1"},
	}
	v.send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: endpointURL, ResourceNames: []string{"outbound|80||machines.example"}})
	go v.read()
	return v
}

func (v *machine) send(r *discoveryv3.DiscoveryRequest) {
	v.t.Helper()
	if err := v.stream.Send(r); err != nil {
		v.t.Fatal(err)
	}
}

// says reports the health; empty: it is good.
func (v *machine) says(reason string) {
	v.t.Helper()
	r := &discoveryv3.DiscoveryRequest{TypeUrl: healthURL}
	if reason != "" {
		r.ErrorDetail = &rpc.Status{Code: 500, Message: reason}
	}
	v.send(r)
}

// read takes endpoints until the stream ends.
func (v *machine) read() {
	for {
		r, err := v.stream.Recv()
		v.mu.Lock()
		if v.err = err; err != nil {
			v.mu.Unlock()
			return
		}
		v.endpoints = nil
		for _, each := range r.Resources {
			var a endpointv3.ClusterLoadAssignment
			if err := each.UnmarshalTo(&a); err != nil {
				continue
			}
			for _, l := range a.Endpoints {
				for _, e := range l.LbEndpoints {
					v.endpoints = append(v.endpoints, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
				}
			}
		}
		_ = v.stream.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: r.TypeUrl, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce,
			ResourceNames: []string{"outbound|80||machines.example"},
		})
		v.mu.Unlock()
	}
}

// reaches waits until the endpoints are these.
func (v *machine) reaches(want ...string) {
	v.t.Helper()
	wait.For(v.t, fmt.Sprintf("endpoints are %v", want), func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if got := slices.Sorted(slices.Values(v.endpoints)); !slices.Equal(got, want) || v.err != nil {
			return fmt.Errorf("they are %v; %v", got, v.err)
		}
		return nil
	})
}

// workloadEntry is what counts of one.
type workloadEntry struct {
	Metadata struct {
		Name, UID, ResourceVersion string
		Labels, Annotations        map[string]string
		OwnerReferences            []struct{ Kind, Name string }
	}
	Spec struct {
		Address, Network, Locality, ServiceAccount string
		Labels                                     map[string]string
		Ports                                      map[string]int
	}
	Status struct {
		Conditions []struct{ Type, Status, Message string }
	}
}

func (e workloadEntry) says(annotation string) string {
	return e.Metadata.Annotations["istio.io/"+annotation]
}

// entries are those of shop, by name.
func (m *machines) entries() map[string]workloadEntry {
	m.t.Helper()
	var list struct{ Items []workloadEntry }
	if err := json.Unmarshal([]byte(m.cluster.Kubectl(m.t, "get", "workloadentries", "-n", "shop", "-o", "json")), &list); err != nil {
		m.t.Fatal(err)
	}
	out := map[string]workloadEntry{}
	for _, e := range list.Items {
		out[e.Metadata.Name] = e
	}
	return out
}

// entry waits until one is as it should be.
func (m *machines) entry(what, name string, holds func(workloadEntry) bool) (e workloadEntry) {
	m.t.Helper()
	wait.For(m.t, what, func() error {
		all := m.entries()
		var ok bool
		if e, ok = all[name]; !ok || !holds(e) {
			return fmt.Errorf("%s is %+v of %v", name, e, slices.Collect(maps.Keys(all)))
		}
		return nil
	})
	return e
}

// gone waits until there is no entry of a name.
func (m *machines) gone(name string) {
	m.t.Helper()
	wait.For(m.t, name+" has gone", func() error {
		if e, ok := m.entries()[name]; ok {
			return fmt.Errorf("it is %+v", e)
		}
		return nil
	})
}

func connected(e workloadEntry) bool {
	return e.says("connectedAt") != "" && e.says("disconnectedAt") == ""
}

// logs waits until a plane has logged words.
func logs(t *testing.T, s *secured, words string) {
	t.Helper()
	wait.For(t, "the log says "+words, func() error {
		if !strings.Contains(s.plane.Log(), words) {
			return errors.New("it doesn't")
		}
		return nil
	})
}

// TestRegistration: agents that connect with an identity, from the address that they claim, get
// entries of their group; who may not gets none, and objects of others stay as they are. Replicas
// hand them over; what a replica leaves that is killed goes. All of it is done with exactly the
// rights of registration.yaml, each of which is used.
func TestRegistration(t *testing.T) {
	t.Parallel()
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	m := newMachines(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	m.cluster.Apply(t, documents(groupOf("web", "machine"), bySelector, `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web-127.0.0.40, namespace: shop, labels: {app: other}}
spec: {address: 127.0.0.40, serviceAccount: machine}`))
	byHand := m.entries()["web-127.0.0.40"]
	one, two := m.plane("--autoRegistration"), m.plane("--autoRegistration")

	first := m.connect(one, who{from: "127.0.0.31", claims: "127.0.0.31", account: "machine", group: "web"})
	e := m.entry("the first has an entry", "web-127.0.0.31", connected)
	if e.Spec.Address != "127.0.0.31" || e.Spec.Network != "there" || e.Spec.Locality != "eu/eu-1" ||
		e.Spec.ServiceAccount != "machine" || e.Spec.Ports["http"] != 8080 ||
		!maps.Equal(e.Spec.Labels, map[string]string{"app": "machine", "version": "v1"}) || !maps.Equal(e.Metadata.Labels, e.Spec.Labels) ||
		e.says("autoRegistrationGroup") != "web" || e.says("workloadController") == "" || e.Metadata.Annotations["of"] != "its group" ||
		len(e.Metadata.OwnerReferences) != 1 || e.Metadata.OwnerReferences[0].Kind != "WorkloadGroup" {
		t.Errorf("%+v", e)
	}
	first.reaches("127.0.0.31")

	second := m.connect(two, who{from: "127.0.0.32", claims: "127.0.0.32", account: "machine", group: "web", checked: true})
	e = m.entry("the second has an entry", "web-127.0.0.32", connected)
	if e.Metadata.Annotations["proxy.istio.io/health-checks-enabled"] != "true" {
		t.Errorf("%+v", e)
	}
	condition := func(status, message string) func(workloadEntry) bool {
		return func(e workloadEntry) bool {
			return len(e.Status.Conditions) == 1 && e.Status.Conditions[0].Type == "Healthy" &&
				e.Status.Conditions[0].Status == status && e.Status.Conditions[0].Message == message
		}
	}
	second.says("")
	m.entry("it is healthy", "web-127.0.0.32", condition("True", ""))
	first.reaches("127.0.0.31", "127.0.0.32")
	second.says("the port is closed")
	m.entry("it is not", "web-127.0.0.32", condition("False", "the port is closed"))
	first.reaches("127.0.0.31")

	for why, w := range map[string]who{
		"it is connected in plain text":                            {from: "127.0.0.33", claims: "127.0.0.33", account: "machine", group: "web", plain: true},
		"it claims the address 127.0.0.99 and is connected from":   {from: "127.0.0.34", claims: "127.0.0.99", account: "machine", group: "web"},
		"its WorkloadGroup is for agents of the service account":   {from: "127.0.0.35", claims: "127.0.0.35", account: "stranger", group: "web"},
		"there is no WorkloadGroup shop/nobody":                    {from: "127.0.0.36", claims: "127.0.0.36", account: "machine", group: "nobody"},
		"there is an entry of its name, which was not made for an": {from: "127.0.0.40", claims: "127.0.0.40", account: "machine", group: "web"},
		"the entry of its name is that of another identity":        {from: "127.0.0.31", claims: "127.0.0.31", account: "stranger", group: "web"},
		"there is no WorkloadGroup shop/later":                     {from: "127.0.0.37", claims: "127.0.0.37", account: "machine", group: "later"},
		"can't be the name of its entry: a lowercase RFC 1123":     {from: "127.0.0.38", claims: "127.0.0.38", account: "machine", group: "web_x"},
	} {
		m.connect(one, w)
		logs(t, one, why)
	}
	third := m.connect(one, who{from: "127.0.0.38", claims: "127.0.0.38", account: "machine", group: "web"})
	m.entry("there is room for a third", "web-127.0.0.38", connected)
	m.connect(one, who{from: "127.0.0.39", claims: "127.0.0.39", account: "machine", group: "web"})
	logs(t, one, "there are 3 entries of its group, and no more than 3 may be")
	m.cluster.Apply(t, groupOf("later", "machine"))
	m.entry("a group that comes later", "later-127.0.0.37", connected)
	third.close()
	m.entry("who goes has gone", "web-127.0.0.38", func(e workloadEntry) bool { return e.says("connectedAt") == "" && e.says("disconnectedAt") != "" })
	m.gone("web-127.0.0.38")
	m.entry("there is room again", "web-127.0.0.39", connected)

	// The plugin is killed: the agents stay, and so do their entries.
	before := m.entries()
	one.plane.Signal(t, "registration", syscall.SIGKILL)
	fourth := m.connect(one, who{from: "127.0.0.41", claims: "127.0.0.41", account: "machine", group: "later"})
	m.entry("it works again", "later-127.0.0.41", connected)
	for _, name := range []string{"web-127.0.0.31", "web-127.0.0.39", "web-127.0.0.40"} {
		if now := m.entries()[name]; now.Metadata.ResourceVersion != before[name].Metadata.ResourceVersion {
			t.Errorf("%s was %+v and is %+v", name, before[name], now)
		}
	}

	// An agent comes to another replica, and leaves the old one.
	moved := m.connect(two, who{from: "127.0.0.41", claims: "127.0.0.41", account: "machine", group: "later"})
	at := m.entries()["web-127.0.0.32"].says("workloadController")
	m.entry("it is handed over", "later-127.0.0.41", func(e workloadEntry) bool { return connected(e) && e.says("workloadController") == at })
	was := m.entries()["later-127.0.0.41"]
	fourth.close()
	m.connect(one, who{from: "127.0.0.42", claims: "127.0.0.42", account: "machine", group: "later"})
	m.entry("another one after that", "later-127.0.0.42", connected)
	if now := m.entries()["later-127.0.0.41"]; now.Metadata.ResourceVersion != was.Metadata.ResourceVersion {
		t.Errorf("it was %+v and is %+v", was, now)
	}
	_ = moved

	// A replica is killed: what it leaves goes, unless its agent comes to another one.
	two.plane.Kill()
	back := m.connect(one, who{from: "127.0.0.32", claims: "127.0.0.32", account: "machine", group: "web", checked: true})
	m.gone("later-127.0.0.41")
	at = m.entries()["web-127.0.0.31"].says("workloadController")
	m.entry("who came to the other one stays", "web-127.0.0.32", func(e workloadEntry) bool { return connected(e) && e.says("workloadController") == at })
	back.says("")
	first.reaches("127.0.0.31", "127.0.0.32", "127.0.0.37", "127.0.0.39", "127.0.0.42")
	wait.For(t, "its Lease is deleted", func() error {
		if out := m.cluster.Kubectl(t, "get", "leases", "-n", "istio-system", "-o", "name"); strings.Count(out, "coxswain-registration-") != 1 {
			return errors.New(out)
		}
		return nil
	})

	// The group goes, and its entries with it; others stay.
	m.cluster.Kubectl(t, "delete", "workloadgroup", "later", "-n", "shop")
	m.gone("later-127.0.0.37")
	m.gone("later-127.0.0.42")
	m.entry("entries of another group stay", "web-127.0.0.31", connected)
	if now := m.entries()["web-127.0.0.40"]; now.Metadata.ResourceVersion != byHand.Metadata.ResourceVersion {
		t.Errorf("what was written by hand is %+v", now)
	}

	used, given := asked(t, audit), rightsOf(t, "registration.yaml")
	for call, code := range used {
		if code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	for right := range given {
		if _, ok := used[right]; !ok {
			t.Errorf("nobody uses %s", right)
		}
	}
}

// TestRegistrationIsAskedFor: without the setting no agent is registered, and with --readOnly none
// is either: nothing is written.
func TestRegistrationIsAskedFor(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	m.cluster.Apply(t, documents(groupOf("web", "machine"), bySelector))
	off, only, on := m.plane(), m.plane("--autoRegistration", "--readOnly"), m.plane("--autoRegistration")
	for i, s := range []*secured{off, only, on} {
		address := fmt.Sprintf("127.0.0.%d", 51+i)
		m.connect(s, who{from: address, claims: address, account: "machine", group: "web"}).reaches()
	}
	m.entry("one has an entry", "web-127.0.0.53", connected)
	if all := m.entries(); len(all) != 1 {
		t.Errorf("there are %+v", all)
	}
	for what, s := range map[string]*secured{"disabled": off, "read only": only} {
		if p := s.plane.Plugins(t)["registration"]; p.State == "serving" {
			t.Errorf("%s: it is %s", what, p.State)
		}
	}
}

// TestRegistersAgent: pilot-agent, with what istioctl writes for a machine of a WorkloadGroup,
// gets a certificate and an entry, which says how its workload is, and goes some time after it.
func TestRegistersAgent(t *testing.T) {
	need.All(t)
	t.Parallel()
	m := newMachines(t)
	text, err := os.ReadFile(filepath.Join(m.dir, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(m.dir, "plugins.yaml"), strings.Replace(string(text), "config: {grace: 2s, ", `config: {proxies: ["127.0.0.1/32"], grace: 2s, `, 1))
	backend := mesh.NewBackend(t, "machine")
	m.cluster.Apply(t, documents(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata: {mesh: \"\"}",
		groupOf("web", "machine")+fmt.Sprintf("\n  probe: {periodSeconds: 1, httpGet: {host: 127.0.0.1, port: %d}}", backend.Port),
	))
	m.cluster.Kubectl(t, "create", "serviceaccount", "machine", "-n", "shop")
	plane := mesh.Start(t, program, "", append(slices.Clone(m.args), "--autoRegistration")...)
	plane.Ready(t)
	root(t, m.cluster, "shop", anything)
	configured := t.TempDir()
	istioctl := filepath.Join(peers.Built(t, "test/peer", "peer", "istioctl"), "istioctl")
	out, err := exec.Command(istioctl, "--kubeconfig", m.cluster.Kubeconfig, "experimental", "workload", "entry",
		"configure", "--name", "web", "--namespace", "shop", "--clusterID", "Kubernetes",
		"--autoregister", "--ingressIP", "127.0.0.1", "--internalIP", "127.0.0.62", "-o", configured).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(configured, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	w := agent.Workload{
		Name: "machine-1", Namespace: "shop", IP: "127.0.0.62", Account: "machine",
		Token: string(file("istio-token")), Discovery: plane.Secure, Roots: file("root-cert.pem"),
		Mesh: file("mesh.yaml"), Env: []string{"ISTIO_META_INTERCEPTION_MODE=NONE"},
	}
	for line := range strings.Lines(string(file("cluster.env"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "ISTIO_META") {
			w.Env = append(w.Env, name+"="+strings.Trim(value, "'"))
		}
	}
	a := agent.Start(t, w)
	a.Is(t, "spiffe://cluster.local/ns/shop/sa/machine", "")
	name := ""
	for _, each := range w.Env {
		if network, ok := strings.CutPrefix(each, "ISTIO_META_NETWORK="); ok && network != "" {
			name = "-" + network
		}
	}
	name = "web-127.0.0.62" + name
	condition := func(status string) func(workloadEntry) bool {
		return func(e workloadEntry) bool {
			return connected(e) && len(e.Status.Conditions) == 1 && e.Status.Conditions[0].Status == status
		}
	}
	m.entry("it is healthy", name, condition("True"))
	backend.Stop()
	m.entry("it is not", name, condition("False"))
	a.Stop()
	m.gone(name)
}
