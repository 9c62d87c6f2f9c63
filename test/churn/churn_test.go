package churn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	services = flag.Int("services", 50, "services of the cluster")
	pods     = flag.Int("pods", 200, "pods in all services")
	sidecars = flag.Int("sidecars", 20, "sidecars, each in a pod that stays")
	rate     = flag.Int("rate", 50, "pods that are replaced in a second")
	churning = flag.Duration("churning", 3*time.Second, "how long")
	quiet    = flag.Duration("quiet", 2*time.Second, "rest after that, at whose end memory is read")
	rounds   = flag.Int("rounds", 1, "how often the servers take turns")
	servers  = flag.String("servers", coxswain, "coxswain, istiod or both")
	result   = flag.String("result", "", "a file for the rounds as JSON")
)

// The servers that are compared.
const coxswain, istiod = "coxswain", "istiod"

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	mesh.Quick(&program, m.Run)
}

// patience is how long the last address may take to the last sidecar, and how long sidecars may
// take to connect: istiod takes only so many at once, and where it is slow those that it refused
// come again and again.
const patience = 4 * time.Minute

// figures of a server in a round; times in milliseconds, CPU in seconds, sizes in MB of 10^6 bytes.
type figures struct {
	Server                       string
	Ready, ReadyCPU              float64 // first start to ready
	Connect, ConnectCPU          float64 // all sidecars, from nothing: p99
	Never                        int     // addresses that not all sidecars got
	Refused                      int64   // streams that had to come again: the server takes only so many at once
	CPU, P50, P99, Most          float64 // of the churn; from the write of a slice to the last sidecar
	Rate                         float64 // pods replaced in a second
	Peak, After                  float64 // memory, at its most and after a rest
	ReadyRequests, Requests      int     // to the API server until ready, and in the churn
	ReadyBytes, Bytes, SentBytes float64 // from the API server until ready, and in the churn; to sidecars in the churn
	Messages                     int64   // to sidecars in the churn
	// Processes is what each had at the peak, Resting after a rest.
	Processes, Resting map[string]float64
}

// TestChurn: on a cluster whose pods are replaced all the time, each address gets to each sidecar.
func TestChurn(t *testing.T) {
	dir := t.TempDir()
	policy, audit := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", kube.Another))
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n")
	began := time.Now()
	p := populate(t, c, *services, *pods)
	t.Logf("%d services with %d pods made in %v", *services, *pods, time.Since(began).Round(time.Millisecond))

	// The first to watch a kind is refused until the API server has its objects in memory, and
	// comes again a second later: nobody's figure.
	_, _, stop := start(t, coxswain, c)
	stop()
	var all []figures
	order := strings.Split(*servers, ",")
	for range *rounds {
		for _, server := range order {
			f := measure(t, c, p, audit, server)
			all = append(all, f)
			line, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", line)
		}
		slices.Reverse(order)
	}
	if *result != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		put(t, *result, string(text))
	}
	t.Logf("medians of %d rounds; %d services, %d pods, %d sidecars, %d pods a second for %v\n%s", *rounds,
		*services, *pods, *sidecars, *rate, *churning, table(all))
}

// measure starts a server, connects the sidecars, and replaces pods.
func measure(t *testing.T, c *kube.Cluster, p *population, audit, server string) (f figures) {
	t.Helper()
	f.Server = server
	via, relay := through(t, c)
	asked := requests(t, audit)
	began := time.Now()
	xds, pid, stop := start(t, server, via)
	f.Ready, f.ReadyCPU = ms(time.Since(began)), usage.CPU(pid)
	f.ReadyRequests, f.ReadyBytes = requests(t, audit)-asked, float64(relay.Down())/1e6
	defer stop()
	memory := usage.Watch(pid)
	defer memory.Close()

	connected, arrival, err := fleet.Connect(t.Context(), fleet.Config{Address: xds, Sidecars: *sidecars, Pods: p.sidecars(*sidecars), Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	if arrival.Missing > 0 {
		t.Fatalf("%s: %d sidecars are not configured after %v", server, arrival.Missing, patience)
	}
	connected.Rest(time.Second)
	f.Refused = connected.Broken()
	f.Connect, f.ConnectCPU = ms(arrival.P99), usage.CPU(pid)-f.ReadyCPU

	plan := p.replacements(*rate * int(churning.Seconds()))
	addresses := make([]string, len(plan))
	for i, r := range plan {
		addresses[i] = address(r.comes)
	}
	followed := connected.Follow(addresses)
	cpu, down, asked, before := usage.CPU(pid), relay.Down(), requests(t, audit), connected.Received()
	began = time.Now()
	if err := p.replace(t.Context(), plan, *rate); err != nil {
		t.Fatal(err)
	}
	f.Rate = float64(len(plan)) / time.Since(began).Seconds()
	times, never := arrivals(t, server, plan, followed)
	f.Never = never
	f.P50, f.P99, f.Most = ms(times[len(times)/2]), ms(times[len(times)*99/100]), ms(times[len(times)-1])
	connected.Rest(time.Second)
	after := connected.Received()
	f.CPU, f.Bytes, f.Requests = usage.CPU(pid)-cpu, float64(relay.Down()-down)/1e6, requests(t, audit)-asked
	f.SentBytes, f.Messages = float64(after.Bytes-before.Bytes)/1e6, after.Messages-before.Messages
	time.Sleep(*quiet)
	f.After, f.Peak = memory.Read()
	f.Processes, f.Resting = memory.Processes(), memory.Latest()
	if n := connected.Broken() - f.Refused; n > 0 {
		t.Errorf("%s: %d streams broke", server, n)
	}
	return f
}

// arrivals waits until all sidecars have all addresses, and returns how long each took to the last
// of them, sorted. Addresses that some never get fail the test; those of a server that we only
// compare with are a figure.
func arrivals(t *testing.T, server string, plan []*replacement, followed *fleet.Followed) (times []time.Duration, never int) {
	t.Helper()
	var missing []string
	deadline := time.Now().Add(patience)
	for i, r := range plan {
		n, at := followed.Last(i)
		for ; n < *sidecars && time.Now().Before(deadline); n, at = followed.Last(i) {
			time.Sleep(10 * time.Millisecond)
		}
		if n < *sidecars {
			missing = append(missing, fmt.Sprintf("%s of %s (%d of %d sidecars have it)", address(r.comes), r.of.name, n, *sidecars))
			continue
		}
		times = append(times, at.Sub(r.wrote))
	}
	if len(times) == 0 {
		t.Fatalf("%s: no address got to all sidecars", server)
	}
	if len(missing) > 0 {
		tell := t.Logf
		if server == coxswain {
			tell = t.Errorf
		}
		tell("%s: %d addresses did not get to all sidecars within %v of the last write: %s, ...", server, len(missing), patience, missing[0])
	}
	slices.Sort(times)
	return times, len(missing)
}

// through is the cluster for another user, whose calls are audited, by way of a relay that counts
// bytes.
func through(t *testing.T, c *kube.Cluster) (*kube.Cluster, *mesh.Relay) {
	t.Helper()
	relay := mesh.NewPortRelay(t, c.Address())
	via := *c
	via.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	put(t, via.Kubeconfig, strings.Replace(c.Remote(t, kube.Another), c.Address(), relay.Address, 1))
	return &via, relay
}

// start starts a server and waits until it is ready; stop ends it.
func start(t *testing.T, server string, c *kube.Cluster) (xds string, pid int, stop func()) {
	t.Helper()
	if server == istiod {
		i := kube.StartIstiod(t, c)
		return i.XDS, i.PID(), i.Stop
	}
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--enableCAServer=false", "--kubeconfig", c.Kubeconfig, "--logLevel", "warn")
	plane.Ready(t)
	return plane.XDS, plane.PID(), func() { plane.Stop(t) }
}

// requests counts the calls in an audit log; one may have a line when its answer begins and one
// when that ends.
func requests(t *testing.T, audit string) int {
	t.Helper()
	text, err := os.ReadFile(audit)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for line := range bytes.Lines(text) {
		var e struct{ AuditID string }
		if json.Unmarshal(line, &e) == nil { // the last one may be half written
			calls[e.AuditID] = true
		}
	}
	return len(calls)
}

// table has the medians of each server, and the ratio of the product's to istiod's beside its goal.
func table(all []figures) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-46s %10s %10s %8s %6s\n", "", coxswain, istiod, "ratio", "goal")
	for _, row := range []struct {
		name, goal string
		of         func(figures) float64
	}{
		{"start to ready: ms", "1", func(f figures) float64 { return f.Ready }},
		{"start to ready: CPU s", "", func(f figures) float64 { return f.ReadyCPU }},
		{"start to ready: requests", "", func(f figures) float64 { return float64(f.ReadyRequests) }},
		{"start to ready: MB from the API server", "", func(f figures) float64 { return f.ReadyBytes }},
		{"all sidecars connect: p99 ms", "", func(f figures) float64 { return f.Connect }},
		{"all sidecars connect: CPU s", "", func(f figures) float64 { return f.ConnectCPU }},
		{"all sidecars connect: streams refused", "", func(f figures) float64 { return float64(f.Refused) }},
		{"churn: pods replaced in a second", "", func(f figures) float64 { return f.Rate }},
		{"churn: CPU s", "0.33", func(f figures) float64 { return f.CPU }},
		{"churn: slice to last sidecar, p50 ms", "", func(f figures) float64 { return f.P50 }},
		{"churn: slice to last sidecar, p99 ms", "0.5", func(f figures) float64 { return f.P99 }},
		{"churn: slice to last sidecar, most ms", "", func(f figures) float64 { return f.Most }},
		{"churn: addresses that some never got", "", func(f figures) float64 { return float64(f.Never) }},
		{"churn: requests", "", func(f figures) float64 { return float64(f.Requests) }},
		{"churn: MB from the API server", "", func(f figures) float64 { return f.Bytes }},
		{"churn: MB to sidecars", "", func(f figures) float64 { return f.SentBytes }},
		{"churn: messages to sidecars", "", func(f figures) float64 { return float64(f.Messages) }},
		{"memory: peak MB", "0.5", func(f figures) float64 { return f.Peak }},
		{"memory: MB after a rest", "0.5", func(f figures) float64 { return f.After }},
	} {
		ours, theirs := median(all, coxswain, row.of), median(all, istiod, row.of)
		fmt.Fprintf(&out, "%-46s %10.1f %10.1f %8s %6s\n", row.name, ours, theirs, ratio(ours, theirs), cmp.Or(row.goal, "-"))
	}
	return out.String()
}

func (f figures) server() string { return f.Server }

// median of a figure of a server's rounds.
func median[F interface{ server() string }](all []F, server string, of func(F) float64) float64 {
	var values []float64
	for _, f := range all {
		if f.server() == server {
			values = append(values, of(f))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
