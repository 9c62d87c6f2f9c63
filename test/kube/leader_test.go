package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// leaseTime is for how long a Lease of the test holds.
const leaseTime = 4 * time.Second

// addressesLock is the lock of who gives addresses to ServiceEntries.
const addressesLock = "istio-ip-autoallocate"

// lockHeld is what a lock says that is an annotation of a ConfigMap, as istiod's are.
type lockHeld struct {
	HolderIdentity, HolderKey, RenewTime string
	LeaderTransitions                    int
}

// lockOf reads a lock; it is empty where it is not there.
func lockOf(t *testing.T, c *kube.Cluster, name string) (is lockHeld) {
	t.Helper()
	text := c.Kubectl(t, "get", "configmap", name, "-n", "istio-system", "--ignore-not-found", "-o",
		`jsonpath={.metadata.annotations.control-plane\.alpha\.kubernetes\.io/leader}`)
	if text != "" {
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err)
		}
	}
	return is
}

// leaders are replicas with the rights of deploy/ of which one at a time gives addresses.
type leaders struct {
	t       *testing.T
	cluster *kube.Cluster
	args    []string
	// all have run at some time; killed is when one of them was, and ahead by how much its clock
	// differs.
	all     []*mesh.Plane
	killed  map[*mesh.Plane]time.Time
	ahead   map[*mesh.Plane]time.Duration
	entries int
	// deleted is when somebody deleted the Lease: the next to lead may begin before the last has
	// seen it.
	deleted time.Time
}

// newLeaders has the control planes of a cluster with short Leases.
func newLeaders(t *testing.T) *leaders {
	t.Helper()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	set, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Without any ServiceEntry the plugin sleeps.
	c.Apply(t, entry("first", "{hosts: [first.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	dir, builtin := t.TempDir(), "builtin: controller/addresses\n"
	if !strings.Contains(string(set), builtin) {
		t.Fatalf("there is no %s", builtin)
	}
	put(t, filepath.Join(dir, "plugins.yaml"), strings.Replace(string(set), builtin, fmt.Sprintf("%s    config: {lease: %v}\n", builtin, leaseTime), 1))
	put(t, filepath.Join(dir, "kubeconfig"), c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	return &leaders{t: t, cluster: c, killed: map[*mesh.Plane]time.Time{}, ahead: map[*mesh.Plane]time.Duration{}, args: []string{"--plugins", filepath.Join(dir, "plugins.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig")}}
}

func (l *leaders) start() *mesh.Plane { return l.startOf(program, 0) }

// startOf starts a program whose clock is ahead.
func (l *leaders) startOf(binary string, ahead time.Duration) *mesh.Plane {
	p := mesh.Start(l.t, binary, "", l.args...)
	p.Ready(l.t)
	l.all, l.ahead[p] = append(l.all, p), ahead
	return p
}

func (l *leaders) kill(p *mesh.Plane) {
	p.Kill()
	l.killed[p] = time.Now()
}

var leads = regexp.MustCompile(`time=(\S+) .*this replica leads( no more)?.* plugin=addresses .*as=(\S+)`)

// reign is from when to when a replica led; until is zero while it does.
type reign struct {
	as          string
	from, until time.Time
}

// reigns are those of a control plane, as its log says.
func (l *leaders) reigns(p *mesh.Plane) (all []reign) {
	l.t.Helper()
	for line := range strings.Lines(p.Log()) {
		m := leads.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			l.t.Fatal(err)
		}
		at = at.Add(-l.ahead[p])
		if m[2] == "" {
			all = append(all, reign{as: m[3], from: at})
			continue
		}
		i := slices.IndexFunc(all, func(r reign) bool { return r.as == m[3] && r.until.IsZero() })
		all[i].until = at
	}
	if i := slices.IndexFunc(all, func(r reign) bool { return r.until.IsZero() }); i >= 0 {
		all[i].until = l.killed[p]
	}
	return all
}

// leader waits until a replica that holds the Lease works, and returns it.
func (l *leaders) leader() (p *mesh.Plane) {
	l.t.Helper()
	wait.For(l.t, "one leads", func() error {
		held := lockOf(l.t, l.cluster, addressesLock)
		if held.HolderIdentity == "" {
			return errors.New("nobody has the lock")
		}
		for _, p = range l.all {
			if slices.ContainsFunc(l.reigns(p), func(r reign) bool { return r.as == held.HolderIdentity && r.until.IsZero() }) {
				return nil
			}
		}
		return fmt.Errorf("%+v has the lock", held)
	})
	l.entries++
	name := fmt.Sprintf("outside-%d", l.entries)
	l.cluster.Apply(l.t, entry(name, "{hosts: ["+name+".example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	wait.For(l.t, "an entry has addresses", func() error {
		if got := statuses(l.t, l.cluster)[name]; len(got) != 2 {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	return p
}

// stops waits until a replica that led leads no more.
func (l *leaders) stops(p *mesh.Plane) {
	l.t.Helper()
	wait.For(l.t, "it leads no more", func() error {
		if all := l.reigns(p); len(all) == 0 || all[len(all)-1].until.IsZero() {
			return fmt.Errorf("it led %v", all)
		}
		return nil
	})
}

// apart checks that no two led at once.
func (l *leaders) apart() {
	l.t.Helper()
	var all []reign
	for _, p := range l.all {
		all = append(all, l.reigns(p)...)
	}
	slices.SortFunc(all, func(a, b reign) int { return a.from.Compare(b.from) })
	for i := 1; i < len(all); i++ {
		until, from := all[i-1].until, all[i].from
		if from.After(l.deleted) && !until.IsZero() && until.Before(l.deleted.Add(leaseTime)) {
			continue
		}
		if until.IsZero() || until.After(from) {
			l.t.Errorf("%v and %v", all[i-1], all[i])
		}
	}
	l.t.Logf("%d terms", len(all))
}

// TestLeader: of two replicas one at a time gives addresses to ServiceEntries: the other one when
// the first dies, or its plugin ends; after the API server was away, after the Lease was deleted;
// none while the right to it is missing.
func TestLeader(t *testing.T) {
	t.Parallel()
	l := newLeaders(t)
	l.start()
	l.start()
	first := l.leader()
	for _, plugin := range []string{"addresses", "crds"} {
		if out, err := exec.Command(program, "plugins", "restart", plugin, "--addr", first.HTTP).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		first = l.leader()
	}
	l.kill(first)
	l.leader()
	l.start()

	l.deleted = time.Now()
	l.cluster.Kubectl(t, "delete", "configmap", addressesLock, "-n", "istio-system")
	now := l.leader()
	l.cluster.Down()
	l.stops(now)
	l.cluster.Up(t)
	now = l.leader()

	const verbs = `[{"op": "replace", "path": "/rules/2/verbs", "value": [%s]}]`
	l.cluster.Kubectl(t, "patch", "role", "coxswain", "-n", "istio-system", "--type", "json", "-p", fmt.Sprintf(verbs, `"get"`))
	l.stops(now)
	wait.For(t, "the reason is told", func() error {
		if text := now.Log(); !strings.Contains(text, "who leads can't be decided") || !strings.Contains(text, "cannot patch resource") {
			return fmt.Errorf("%s", now.LastLines(5))
		}
		return nil
	})
	l.cluster.Kubectl(t, "patch", "role", "coxswain", "-n", "istio-system", "--type", "json", "-p", fmt.Sprintf(verbs, `"get", "patch"`))
	l.leader()
	l.apart()
}
