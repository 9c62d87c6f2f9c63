package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestRegistration: where Istio's resources are in an etcd, an agent that connects by delta gets
// an entry there, which says how its workload is; the replica of two that it goes to takes it
// over, and it goes some time after its agent, or with its group.
func TestRegistration(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	object(t, s, "WorkloadGroup", "web", "{template: {serviceAccount: machine, labels: {app: web}}}")
	plugins := set(t, fmt.Sprintf(`
  - {name: resources, kind: config, builtin: config/etcd, onLoss: apply, config: {endpoints: ["http://%s"]}}
  - name: registration
    kind: controller
    builtin: controller/registration
    config: {grace: 2s, lease: 2s}
    allow: {store: [networking.istio.io/WorkloadEntry, networking.istio.io/WorkloadGroup, coordination.k8s.io/Lease]}
`, s.Address))
	a, own := authority.New(t), t.TempDir()
	a.IssueLocal(t, own)
	replica := func() (p *mesh.Plane, secure string) {
		secure = wait.Address(t)
		p = mesh.Start(t, program, t.TempDir(), "--plugins", plugins, "--secureGRPCAddr", secure,
			"--tlsCertFile", own+"/cert-chain.pem", "--tlsKeyFile", own+"/key.pem", "--caCertFile", own+"/root-cert.pem")
		p.Ready(t)
		return p, secure
	}
	_, first := replica()
	_, second := replica()

	health, leaveFirst := connectMachine(t, a, first, "127.0.0.71")
	key := resources + "networking.istio.io/WorkloadEntry/shop/web-127.0.0.71"
	is := func(what string, words ...string) (text string) {
		t.Helper()
		wait.For(t, what, func() error {
			text = value(t, s, key)
			for _, w := range words {
				if not, ok := strings.CutPrefix(w, "!"); ok == strings.Contains(text, not) {
					return fmt.Errorf("%s: %s", w, text)
				}
			}
			return nil
		})
		return text
	}
	text := is("it has an entry", `"address":"127.0.0.71"`, "istio.io/connectedAt", "istio.io/workloadController", `"kind":"WorkloadGroup"`)
	health("the port is closed")
	is("it says how it is", `"status":"False"`, "the port is closed")
	health("")
	is("it says that it is well", `"status":"True"`, "!the port is closed")

	controller := func(text string) string {
		_, rest, _ := strings.Cut(text, `"istio.io/workloadController":"`)
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	_, leaveSecond := connectMachine(t, a, second, "127.0.0.71")
	is("the other replica has it", "!"+controller(text))
	leaveFirst()
	_, leaveThird := connectMachine(t, a, first, "127.0.0.72")
	neighbour := resources + "networking.istio.io/WorkloadEntry/shop/web-127.0.0.72"
	present := func(key string, want bool) {
		t.Helper()
		wait.For(t, fmt.Sprintf("%s is there: %v", key, want), func() error {
			if text := value(t, s, key); (text != "") != want {
				return errors.New(text)
			}
			return nil
		})
	}
	present(neighbour, true)
	is("it stays", "istio.io/connectedAt", "!istio.io/disconnectedAt")
	leaveSecond()
	is("it has gone", "!istio.io/connectedAt")
	present(key, false)
	present(neighbour, true)
	s.Delete(t, resources+"networking.istio.io/WorkloadGroup/shop/web")
	present(neighbour, false)
	leaveThird()
}

// value is what a key has; empty: there is none.
func value(t *testing.T, s *etcd.Server, key string) string {
	t.Helper()
	r, err := s.Client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

// connectMachine connects the agent of a machine of the group web, from its address, and returns
// how it says how it is, and how it goes.
func connectMachine(t *testing.T, a *authority.Authority, to, address string) (says func(reason string), leave func()) {
	t.Helper()
	dir := t.TempDir()
	a.Issue(t, dir, "spiffe://cluster.local/ns/shop/sa/machine")
	own, err := tls.LoadX509KeyPair(dir+"/cert-chain.pem", dir+"/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile(dir + "/root-cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := grpc.NewClient("passthrough:///"+to,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "127.0.0.1"})),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) }))
	if err != nil {
		t.Fatal(err)
	}
	leave = func() { _ = conn.Close() }
	t.Cleanup(leave)
	metadata, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": "shop", "SERVICE_ACCOUNT": "machine", "AUTO_REGISTER_GROUP": "web", "INSTANCE_IPS": address,
		"PROXY_CONFIG": map[string]any{"readinessProbe": map[string]any{"httpGet": map[string]any{"port": 80}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *discoveryv3.DeltaDiscoveryRequest) {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	send(&discoveryv3.DeltaDiscoveryRequest{
		Node:    &corev3.Node{Id: "sidecar~" + address + "~vm.shop~shop.svc.cluster.local", Metadata: metadata},
		TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	})
	return func(reason string) {
		t.Helper()
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/istio.v1.HealthInformation"}
		if reason != "" {
			r.ErrorDetail = &rpc.Status{Code: 500, Message: reason}
		}
		send(r)
	}, leave
}
