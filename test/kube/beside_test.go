package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// What one of two control planes writes at a time, by the lock under which it does.
var underLocks = map[string]string{
	"istio-namespace-controller-election": "configmaps", "istio-leader": "ingresses/status", "istio-ip-autoallocate": "serviceentries/status",
	exportsLock: "serviceexports",
}

// writers are who has written what is under a lock, of an audit log from a line on: in the order of
// their writes, each once in a row. It returns how many lines there are, too.
func writers(t *testing.T, log string, from int) (of map[string][]string, lines int) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	of = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if lines++; lines <= from {
			continue
		}
		var e struct {
			Verb, UserAgent string
			User            struct{ Username string }
			ObjectRef       struct{ Namespace, Name, Resource, Subresource string }
			ResponseStatus  struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ResponseStatus.Code >= 300 {
			continue
		}
		what := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		for lock, is := range underLocks {
			if what != is || what == "configmaps" && e.ObjectRef.Name != "istio-ca-root-cert" {
				continue
			}
			if strings.HasPrefix(e.UserAgent, "kubectl") {
				continue
			}
			if list := of[lock]; len(list) == 0 || list[len(list)-1] != e.User.Username {
				of[lock] = append(list, e.User.Username)
			}
		}
	}
	return of, lines
}

// TestBesideIstiod: of a Coxswain and an istiod on one cluster one at a time writes roots, the
// addresses of Ingresses, those of ServiceEntries, and exports of services: who holds istiod's
// lock. The other one follows when it has gone, either way.
func TestBesideIstiod(t *testing.T) {
	need.All(t)
	t.Parallel()
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\n"+
		"rules: [{level: Metadata, verbs: [create, update, patch], omitStages: [RequestReceived]}, {level: None}]\n")
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	define(t, c)
	c.Apply(t, documents(system, namespace))
	c.Apply(t, documents(settings("istio", "{}", ""), service, balancer, ingressClass("mesh", "istio.io/ingress-controller")))
	balanced(t, c, `[{"ip": "192.0.2.1"}]`)
	other := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, other, c.Remote(t, kube.Another))
	round := 0
	// written has each of the two have something to write, and waits until it is there.
	written := func() {
		t.Helper()
		for range 5 {
			round++
			name := fmt.Sprintf("round-%d", round)
			c.Apply(t, documents("{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}",
				entry(name, "{hosts: ["+name+".example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"),
				anIngress("shop", name, "mesh", name+".example"), strings.ReplaceAll(service, "web", name)))
			wait.For(t, "all of "+name+" is written", func() error {
				if got := statuses(t, c)[name]; len(got) == 0 {
					return errors.New("the entry has no addresses")
				}
				if got := reached(t, c)[name]; got == "" {
					return errors.New("the Ingress has no address")
				}
				if c.Kubectl(t, "get", "serviceexport", name, "-n", "shop", "--ignore-not-found", "-o", "name") == "" {
					return errors.New("the service is not exported")
				}
				if c.Kubectl(t, "get", "configmap", "istio-ca-root-cert", "-n", name, "--ignore-not-found", "-o", "name") == "" {
					return errors.New("the namespace has no root")
				}
				return nil
			})
		}
	}
	set := withExports(t, "")
	start := func() *mesh.Plane {
		p := mesh.Start(t, program, "", "--plugins", set, "--kubeconfig", other, "--revision", "canary")
		p.Ready(t)
		return p
	}
	// only sees that all that was written since a line is by one, and that the locks say so.
	only := func(when, who, key string, from int) int {
		t.Helper()
		of, lines := writers(t, log, from)
		for _, lock := range slices.Sorted(maps.Keys(underLocks)) {
			if got := of[lock]; !slices.Equal(got, []string{who}) {
				t.Errorf("%s, what is under %s was written by %v", when, lock, got)
			}
			if is := lockOf(t, c, lock); is.HolderKey != key {
				t.Errorf("%s, %s is held by %+v", when, lock, is)
			}
		}
		return lines
	}
	c.Apply(t, settings("istio-canary", "{}", ""))
	env := []string{"ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod", "ENABLE_MCS_AUTO_EXPORT=true"}
	istiod := kube.StartIstiod(t, c, env...)
	written()
	p := start()
	written()
	at := only("istiod leads", "administrator", "default", 0)
	istiod.Stop()
	written() // once its locks have ended
	at = only("istiod has died", "another", "canary", at)
	second := kube.StartIstiod(t, c, env...)
	written()
	at = only("istiod is back, and Coxswain leads", "another", "canary", at)
	if code := p.Stop(t); code != 0 { // it gives its locks up
		t.Errorf("it ended with %d", code)
	}
	written()
	only("Coxswain has ended", "administrator", "default", at)
	second.Stop()
}

// TestRegistersBesideIstiod: where agents register at a Coxswain and at an istiod of one cluster,
// neither touches entries of the other, whoever dies.
func TestRegistersBesideIstiod(t *testing.T) {
	need.All(t)
	t.Parallel()
	m := newMachines(t)
	m.cluster.Apply(t, documents(groupOf("web", "machine"), groupOf("db", "machine"), bySelector))
	ours := m.plane("--autoRegistration")
	istiod := kube.StartIstiod(t, m.cluster, "ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY=false", "PILOT_WORKLOAD_ENTRY_GRACE_PERIOD=2s")
	theirs := &secured{plane: &mesh.Plane{XDS: istiod.XDS}}

	at := m.connect(theirs, who{from: "127.0.0.51", claims: "127.0.0.51", account: "machine", group: "web", plain: true})
	here := m.connect(ours, who{from: "127.0.0.52", claims: "127.0.0.52", account: "machine", group: "db"})
	e := m.entry("istiod has registered its agent", "web-127.0.0.51", connected)
	o := m.entry("we have registered ours", "db-127.0.0.52", connected)
	if e.says("workloadController") != "istiod-0" || o.says("workloadController") == "istiod-0" || o.says("workloadController") == "" {
		t.Errorf("they are of %q and %q", e.says("workloadController"), o.says("workloadController"))
	}
	here.reaches("127.0.0.51", "127.0.0.52")

	// unchanged sees that an entry is as it was, after ours has looked at all of them several
	// times.
	unchanged := func(when string, was workloadEntry) {
		t.Helper()
		for i := range 3 {
			name := fmt.Sprintf("db-127.0.0.%d", 60+i)
			v := m.connect(ours, who{from: name[3:], claims: name[3:], account: "machine", group: "db"})
			m.entry("another one of ours", name, connected)
			v.close()
			m.gone(name)
		}
		if is := m.entries()[was.Metadata.Name]; is.Metadata.ResourceVersion != was.Metadata.ResourceVersion {
			t.Errorf("%s, %s was %+v and is %+v", when, was.Metadata.Name, was, is)
		}
	}
	unchanged("both run", e)
	istiod.Stop()
	unchanged("istiod has died", e)
	second := kube.StartIstiod(t, m.cluster, "ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY=false", "PILOT_WORKLOAD_ENTRY_GRACE_PERIOD=2s")
	unchanged("istiod is back", m.entries()["web-127.0.0.51"])
	o = m.entries()["db-127.0.0.52"]
	ours.plane.Kill()
	again := m.connect(&secured{plane: &mesh.Plane{XDS: second.XDS}},
		who{from: "127.0.0.53", claims: "127.0.0.53", account: "machine", group: "web", plain: true})
	m.entry("istiod goes on", "web-127.0.0.53", connected)
	again.close()
	m.gone("web-127.0.0.53")
	if is := m.entries()["db-127.0.0.52"]; is.Metadata.ResourceVersion != o.Metadata.ResourceVersion {
		t.Errorf("istiod has changed ours: %+v", is)
	}
	at.close()
}
