package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// exportsLock is the lock of who exports services.
const exportsLock = "istio-serviceexport-controller-election"

// withExports is a file with the set for a cluster and controller/exports, with some config.
func withExports(t *testing.T, config string) string {
	t.Helper()
	set, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, fmt.Sprintf("%s\n  - {name: exports, kind: controller, builtin: controller/exports, config: {%s}}\n", set, config))
	return file
}

// holds has an istiod hold one of its locks for an hour, or give it up where it has no name.
func holds(t *testing.T, c *kube.Cluster, lock, istiod string) {
	t.Helper()
	lasts, key := 3600, "default"
	if istiod == "" {
		lasts, key = 1, ""
	}
	now := time.Now().UTC().Format(time.RFC3339)
	record, err := json.Marshal(map[string]any{
		"holderIdentity": istiod, "holderKey": key, "leaseDurationSeconds": lasts, "acquireTime": now, "renewTime": now, "leaderTransitions": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: istio-system, annotations: {%s: %q}}\n",
		lock, "control-plane.alpha.kubernetes.io/leader", record))
}

// looked waits until the one whom an audit log is about has looked three times more at a lock.
func looked(t *testing.T, audit, lock string) {
	t.Helper()
	count := func() (n int) {
		text, err := os.ReadFile(audit)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e struct {
				Verb, Stage string
				ObjectRef   struct{ Resource, Name string }
			}
			if json.Unmarshal([]byte(line), &e) == nil && e.Verb == "get" && e.Stage == "ResponseComplete" && e.ObjectRef.Resource == "configmaps" &&
				e.ObjectRef.Name == lock {
				n++
			}
		}
		return n
	}
	before := count()
	wait.For(t, "the lock "+lock+" is looked at", func() error {
		if n := count() - before; n < 3 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}

// TestExportsAgree: with exactly the rights of exports.yaml beside those of the set, services are
// exported while no istiod holds the lock of who does it; each right is used.
func TestExportsAgree(t *testing.T) {
	t.Parallel()
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	define(t, c)
	c.Apply(t, documents(system, namespace, service))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "exports.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	exports := func() string { return c.Kubectl(t, "get", "serviceexports", "-A", "-o", "name") }
	exported := func(name string) {
		t.Helper()
		wait.For(t, name+" is exported", func() error {
			if now := exports(); !strings.Contains(now, "/"+name+"\n") {
				return fmt.Errorf("there is %q", now)
			}
			return nil
		})
	}

	holds(t, c, exportsLock, "istiod-0")
	p := mesh.Start(t, program, "", "--plugins", withExports(t, fmt.Sprintf("lease: %v", leaseTime)), "--kubeconfig", kubeconfig)
	p.Ready(t)
	looked(t, audit, exportsLock)
	if now := exports(); now != "" {
		t.Errorf("while an istiod holds the lock there is %s", now)
	}
	holds(t, c, exportsLock, "")
	exported("web")
	if held := lockOf(t, c, exportsLock); held.HolderIdentity == "" || held.HolderKey != "default" {
		t.Errorf("it is held by %+v", held)
	}

	holds(t, c, exportsLock, "istiod-1") // one of the default tag takes it
	wait.For(t, "it leads no more", func() error {
		if !strings.Contains(p.Log(), "this replica leads no more\" plugin=exports") {
			return errors.New(p.LastLines(3))
		}
		return nil
	})
	c.Apply(t, strings.ReplaceAll(service, "web", "api"))
	looked(t, audit, exportsLock)
	if now := exports(); strings.Contains(now, "/api\n") {
		t.Errorf("while another istiod holds the lock there is %s", now)
	}
	holds(t, c, exportsLock, "")
	exported("api")
	if code := p.Stop(t); code != 0 { // it gives its lock up
		t.Errorf("it ended with %d", code)
	}
	if held := lockOf(t, c, exportsLock); held.HolderIdentity != "" {
		t.Errorf("once it has ended it is held by %+v", held)
	}
	used, given := asked(t, audit), rightsOf(t, "exports.yaml")
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
	if len(given) != 3 {
		t.Errorf("%d rights are known", len(given))
	}
}
