package consul

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// Tokens: manager may do all, reader what registry/consul needs.
const (
	manager = "e95b599e-166e-7d80-08ad-aee76e7ddf19"
	reader  = "7a1b4c6e-64f4-4f6b-9b8e-0d8d9a3f2b11"
)

// server is a Consul server, a cluster of its own.
type server struct {
	dir, address string
	client       *api.Client
	cmd          *exec.Cmd
	exited       chan struct{}
	log          *registries.Tail
	nodes        sync.Map // that are registered
}

// rules are what registry/consul needs.
const rules = `service_prefix "" {policy = "read"} node_prefix "" {policy = "read"}`

// start starts one with ACLs, and makes the reader's token.
func start(t testing.TB) *server {
	t.Helper()
	s := startWith(t, map[string]any{
		"acl": map[string]any{"enabled": true, "default_policy": "deny", "tokens": map[string]string{"initial_management": manager, "agent": manager}},
	})
	wait.For(t, "there is a policy", func() error {
		_, _, err := s.client.ACL().PolicyCreate(&api.ACLPolicy{Name: "reader", Rules: rules}, nil)
		return err
	})
	_, _, err := s.client.ACL().TokenCreate(&api.ACLToken{SecretID: reader, Policies: []*api.ACLTokenPolicyLink{{Name: "reader"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// startWith starts one whose configuration has more in it.
func startWith(t testing.TB, more map[string]any) *server {
	t.Helper()
	s := configure(t, more)
	s.Start(t)
	return s
}

// cluster starts three that are one cluster.
func cluster(t testing.TB) (all [3]*server) {
	t.Helper()
	var join []string
	for i := range all {
		serf := wait.Port(t)
		all[i] = configure(t, map[string]any{
			"bootstrap_expect": 3, "node_name": fmt.Sprintf("server-%d", i), "serf": serf, "retry_join": slices.Clone(join),
			"autopilot":   map[string]any{"cleanup_dead_servers": false}, // those that are dead come back
			"performance": map[string]int{"raft_multiplier": 2},          // machines may be busy
		})
		join = append(join, fmt.Sprintf("127.0.0.1:%d", serf))
		all[i].launch(t)
	}
	for _, s := range all {
		s.leads(t)
	}
	return all
}

// configure makes one that isn't started yet; the test's end stops it.
func configure(t testing.TB, more map[string]any) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), address: wait.Address(t)}
	var err error
	if s.client, err = api.NewClient(&api.Config{Address: s.address, Token: manager}); err != nil {
		t.Fatal(err)
	}
	_, http, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(http)
	config := map[string]any{
		"server": true, "bootstrap_expect": 1, "node_name": "server", "datacenter": "dc1", "data_dir": filepath.Join(s.dir, "data"),
		"bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "disable_update_check": true, "log_level": "warn",
		"ports": map[string]int{
			"http": number, "https": -1, "dns": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1,
			"serf_lan": wait.Port(t), "server": wait.Port(t),
		},
		"performance": map[string]int{"raft_multiplier": 1},
		"limits":      map[string]any{"http_max_conns_per_client": 1000},
	}
	ports := config["ports"].(map[string]int)
	maps.Copy(config, more)
	for name, key := range map[string]string{"https": "https", "serf": "serf_lan"} { // these stand for ports
		if number, ok := more[name].(int); ok {
			ports[key] = number
			delete(config, name)
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "consul.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// binary is the path of Consul.
func binary(t testing.TB) string {
	t.Helper()
	return need.Program(t, "server/go.sum", "consul", "consul")
}

func (s *server) Address() string { return s.address }

// Start starts it, again after Stop, and waits until there is a leader.
func (s *server) Start(t testing.TB) {
	t.Helper()
	s.launch(t)
	s.leads(t)
}

func (s *server) launch(t testing.TB) {
	t.Helper()
	s.cmd, s.exited, s.log = exec.Command(binary(t), "agent", "-config-file", filepath.Join(s.dir, "consul.json")), make(chan struct{}), &registries.Tail{}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.exited) }()
}

func (s *server) leads(t testing.TB) {
	t.Helper()
	wait.For(t, "Consul has a leader", func() error {
		select {
		case <-s.exited:
			t.Fatalf("Consul has ended: %s", s.log)
		default:
		}
		_, _, err := s.client.Catalog().Services(&api.QueryOptions{RequireConsistent: true})
		return err
	})
}

// Stop ends it as a crash does.
func (s *server) Stop(t testing.TB) { s.stop() }

func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// nodes are so many: instances are on one of them by their ID.
const nodes = 20

// Put registers instances in the catalog, as an outside monitor does: the agent checks none of
// them, and health is what is written.
func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	var ops api.TxnOps
	for _, i := range all {
		node := s.node(t, i)
		status := api.HealthPassing
		if i.Unhealthy {
			status = api.HealthCritical
		}
		ops = append(ops, &api.TxnOp{Service: &api.ServiceTxnOp{Verb: api.ServiceSet, Node: node, Service: api.AgentService{
			ID: i.ID, Service: i.Service, Address: i.Address, Port: i.Port, Meta: i.Metadata, Weights: api.AgentWeights{Passing: i.Weight, Warning: 1},
		}}}, &api.TxnOp{Check: &api.CheckTxnOp{Verb: api.CheckSet, Check: api.HealthCheck{
			Node: node, CheckID: "check-" + i.ID, Name: "check", Status: status, ServiceID: i.ID, ServiceName: i.Service,
		}}})
	}
	s.change(t, ops)
}

// node returns the node of an instance, and registers it.
func (s *server) node(t testing.TB, i registries.Instance) string {
	t.Helper()
	n := 0
	for _, c := range []byte(i.ID) {
		n = (n*31 + int(c)) % nodes
	}
	name := fmt.Sprintf("node-%d", n)
	if _, there := s.nodes.LoadOrStore(name, true); !there {
		_, err := s.client.Catalog().Register(&api.CatalogRegistration{
			Node: name, Address: fmt.Sprintf("127.1.0.%d", n+1),
			NodeMeta: map[string]string{"zone": "z" + strconv.Itoa(n%3)},
		}, nil)
		if err != nil {
			t.Error(err)
		}
	}
	return name
}

func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	var ops api.TxnOps
	for _, i := range all {
		ops = append(ops,
			&api.TxnOp{Service: &api.ServiceTxnOp{Verb: api.ServiceDelete, Node: s.node(t, i), Service: api.AgentService{ID: i.ID, Service: i.Service}}})
	}
	s.change(t, ops)
}

// Spoil gives an instance an address that is none: Consul takes any text.
func (s *server) Spoil(t testing.TB, i registries.Instance) string {
	t.Helper()
	i.Address = "no address!"
	s.Put(t, i)
	return "neither an IP address nor a DNS name"
}

// change does it, as many at once as Consul takes.
func (s *server) change(t testing.TB, ops api.TxnOps) {
	t.Helper()
	const most = 64
	for len(ops) > 0 {
		n := min(most, len(ops))
		ok, answer, _, err := s.client.Txn().Txn(ops[:n], nil)
		if err != nil {
			t.Errorf("Consul did not take it: %v", err)
			return
		}
		for _, e := range answer.Errors {
			t.Errorf("Consul did not take it: %s", e.What)
		}
		if !ok {
			return
		}
		ops = ops[n:]
	}
}
