package kube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// reader is an account that may read Istio's kinds, and nothing else.
const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [networking.istio.io], resources: ["*"], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: reader}]
roleRef: {kind: ClusterRole, apiGroup: rbac.authorization.k8s.io, name: reader}`

// event is what a test looks at.
type event struct {
	Type, Reason, Message string
	Count                 int
	InvolvedObject        struct{ Kind, Name, UID string }
}

// events are the cluster's of the namespace shop.
func events(t *testing.T, c *kube.Cluster) []event {
	t.Helper()
	var list struct{ Items []event }
	if err := json.Unmarshal([]byte(c.Kubectl(t, "get", "events", "-n", "shop", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// held waits until there are Events that say so much, all in all so often.
func held(t *testing.T, c *kube.Cluster, count int, parts ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%d Events have %q", count, parts), func() error {
		n := 0
		all := events(t, c)
		for _, e := range all {
			says := e.Type == "Warning" && e.Reason == "Held" && e.InvolvedObject.Kind == "VirtualService" && e.InvolvedObject.UID != ""
			for _, part := range parts {
				says = says && strings.Contains(e.Message, part)
			}
			if says {
				n += max(e.Count, 1)
			}
		}
		if n != count {
			return fmt.Errorf("they are %d: %+v", n, all)
		}
		return nil
	})
}

// TestEvents: an object that is held has an Event, once for each version of its text; an account
// without the right misses nothing else.
func TestEvents(t *testing.T) {
	c := kube.Start(t)
	c.Apply(t, documents(namespace, definitions(t)["VirtualService"], reader))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	bad := func(name, extra string) {
		c.Apply(t, route(name, name+".example", extra, "match: [{uri: {regex: '('}}], "+direct("x")))
	}
	start := func(kubeconfig string) *mesh.Plane {
		t.Helper()
		set, err := os.ReadFile("../../plugins.yaml")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "plugins.yaml")
		put(t, file, fmt.Sprintf("%s\n  - {name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %q}}\n", set, kubeconfig))
		p := mesh.Start(t, program, t.TempDir(), "--plugins", file)
		p.Ready(t)
		return p
	}

	p := start(c.Kubeconfig)
	bad("web", "")
	held(t, c, 1, "spec.http[0].match[0].uri", "it is not served until it is mended")
	c.Kubectl(t, "annotate", "virtualservice", "web", "-n", "shop", "a=b")
	c.Kubectl(t, "patch", "virtualservice", "web", "-n", "shop", "--subresource", "status", "--type", "merge", "-p", `{"status": {"validationMessages": []}}`)
	bad("api", "") // what came before it has been read
	held(t, c, 2, "spec.http[0].match[0].uri")
	c.Apply(t, route("web", "web.example", "", direct("fine")))
	c.Kubectl(t, "patch", "virtualservice", "web", "-n", "shop", "--type", "merge", "-p",
		`{"spec": {"http": [{"match": [{"uri": {"regex": "("}}], "directResponse": {"status": 200}}]}}`)
	held(t, c, 1, "spec.http[0].match[0].uri", "its last good version stays served")
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}

	text, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	before := len(events(t, c))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, strings.Replace(string(text), "token: administrator", "token: administrator, as: reader", 1))
	p = start(kubeconfig)
	bad("more", "")
	wait.For(t, "the log says that a right is missing", func() error {
		if !strings.Contains(p.Log(), "may this account create and patch events?") {
			return fmt.Errorf("%s", p.LastLines(10))
		}
		return nil
	})
	bad("most", "")
	(&world{plane: p}).says(t, "k8s://networking.istio.io/VirtualService/shop/most", "spec.http[0].match[0].uri")
	if n := strings.Count(p.Log(), "may this account create and patch events?"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	if now := len(events(t, c)); now != before {
		t.Errorf("%d Events, %d before", now, before)
	}
}
