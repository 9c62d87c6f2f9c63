package kube_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const deployed = "../../deploy/kubernetes"

// account is the one that deploy/ gives the control plane.
const account = "system:serviceaccount:istio-system:coxswain"

// TestRights: with exactly the rights of deploy/kubernetes, the set for a cluster sees all that it
// reads, another cluster and faulty objects too. An API server refuses it nothing, be it one that
// streams lists or an older one, and each right is used.
func TestRights(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for name, flags := range map[string][]string{"streams": nil, "lists": {"--feature-gates", "WatchList=false"}} {
		t.Run(name, func(t *testing.T) {
			for call, code := range audited(t, flags...) {
				used[call] = true
				if code == http.StatusUnauthorized || code == http.StatusForbidden {
					t.Errorf("%s: %d", call, code)
				}
			}
		})
	}
	given := rights(t)
	for right := range given {
		if !used[right] {
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) < 40 {
		t.Errorf("%d rights are known", len(given))
	}
}

// TestRightsOfWebhooks: with exactly the rights of webhooks.yaml beside those of the set, pods get
// proxies and objects are judged, and a tag's configurations have the root; the API server refuses
// nothing, and each right is used.
func TestRightsOfWebhooks(t *testing.T) {
	t.Parallel()
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/rev: prod}}}"))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "webhooks.yaml"))
	kubeconfig, at := filepath.Join(t.TempDir(), "kubeconfig"), wait.Address(t)
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	_, port, _ := strings.Cut(at, ":")
	c.Apply(t, printed(t, "https://localhost:"+port))
	if out, err := exec.Command(program, "tag", "--kubeconfig", c.Kubeconfig, "set", "prod", "--revision", "default").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--httpsAddr", at, "--istiodCustomHost", "localhost")
	p.Ready(t)
	client := c.Client(t)
	wait.For(t, "a pod is injected into by a tag", func() error {
		by, err := created(t, client, "shop", nil)
		if err == nil && by != "default" {
			err = fmt.Errorf("it is of %q", by)
		}
		return err
	})
	judged(t, c, "", "validator.coxswain.io")
	if code := p.Stop(t); code != 0 { // it gives its Leases up
		t.Errorf("it ended with %d", code)
	}
	used := asked(t, log)
	for call, code := range used {
		if code == http.StatusUnauthorized || code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	given := rightsOf(t, "webhooks.yaml")
	for right := range given {
		if _, ok := used[right]; !ok {
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) < 10 {
		t.Errorf("%d rights are known", len(given))
	}
}

// definition defines a kind that nobody serves: objects of it are counted alone.
func definition(group, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"+
		"metadata: {name: %[2]s.%[1]s, annotations: {api-approved.kubernetes.io: unapproved}}\n"+
		"spec: {group: %[1]s, scope: Namespaced, names: {plural: %[2]s, singular: %[3]s, kind: %[4]s, listKind: %[4]sList},\n"+
		"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n",
		group, plural, strings.ToLower(kind), kind)
}

// audited is what the account asked of an API server with these flags, a word for each call as in
// rights, with its code, that of a refusal if there was one.
func audited(t *testing.T, flags ...string) map[string]int {
	t.Helper()
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := kube.Start(t, append(flags, "--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-mode", "blocking")...)
	c.Apply(t, documents(kube.Definitions(t), kube.GatewayAPI(t), definition("install.istio.io", "IstioOperator"),
		definition("inference.networking.k8s.io", "InferencePool"), definition("inference.networking.x-k8s.io", "InferencePool")))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace, node))
	c.Apply(t, documents(settings("istio", "{}", ""), service, pod("web-1", first), slice("web-1", first), secret("east", "east", c.Remote(t, ""))))
	c.Kubectl(t, "apply", "-k", deployed) // the Deployment has no one to run it
	if len(flags) > 0 {
		c.Apply(t, endingCA(t)) // it is there, and its root is to be made anew
	}

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	secure := newSecured(t, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--authPlaintext")
	plane := secure.plane
	w := &world{cluster: c, plane: plane}
	for _, of := range []string{"kubernetes", "remote@east"} {
		if p := plane.Plugins(t)[of]; p.State != "serving" {
			t.Errorf("%s is %s; %s", of, p.State, p.LastChange)
		}
	}
	for _, cluster := range []string{"", "east"} {
		own := strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system", ofIstio))
		if err := ends(login(t, plane, own, cluster), codes.PermissionDenied,
			"but the caller is spiffe://cluster.local/ns/istio-system/sa/coxswain"); err != nil {
			t.Errorf("in the cluster %q: %v", cluster, err)
		}
	}
	c.Apply(t, entry("outside", "{hosts: [outside.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	wait.For(t, "an entry has addresses", func() error {
		if got := statuses(t, c)["outside"]; len(got) != 2 {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	eachStatus(t, c)
	c.Apply(t, documents(balancer, ingressClass("mesh", "istio.io/ingress-controller"), anIngress("shop", "ours", "mesh", "ours.example")))
	balanced(t, c, `[{"ip": "192.0.2.1"}]`)
	wait.For(t, "an Ingress has an address", func() error {
		if got := reached(t, c)["ours"]; got != "192.0.2.1" {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
	rootReturns(t, c, "shop")
	good, bad := route("web", "web.example", "", direct("fine")), route("web", "web.example", "", "match: [{uri: {regex: '('}}], "+direct("x"))
	for n := range 2 { // the second time it is counted
		c.Apply(t, good)
		wait.For(t, "the object is right", func() error {
			text, err := plane.Get("/debug/configs")
			if err == nil && (!strings.Contains(text, "shop/web") || strings.Contains(text, "regex")) {
				err = fmt.Errorf("%s", text)
			}
			return err
		})
		c.Apply(t, bad)
		w.says(t, "k8s://networking.istio.io/VirtualService/shop/web", "spec.http[0].match[0].uri")
		held(t, c, n+1, "its last good version stays served")
	}
	port := wait.Port(t)
	of := secure.served(t, "server")
	c.Apply(t, documents(edge, edgeGateway("gw", wait.Port(t), port), of.secret("web"), of.clients()))
	secure.gateway(t, "gw")
	of.shown(t, port)
	if code := plane.Stop(t); code != 0 { // it gives its Lease up
		t.Errorf("it ended with %d", code)
	}
	return asked(t, log)
}

// asked reads an audit log.
func asked(t *testing.T, log string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range bytes.Lines(text) {
		var e struct {
			Verb           string
			ObjectRef      struct{ Namespace, APIGroup, Resource, Subresource string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.ObjectRef.Resource == "" {
			continue // what there is, and how it is
		}
		call := right(e.ObjectRef.Namespace == "istio-system", e.Verb, e.ObjectRef.APIGroup,
			strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/"))
		if was := out[call]; was != http.StatusUnauthorized && was != http.StatusForbidden {
			out[call] = e.ResponseStatus.Code
		}
	}
	return out
}

// rights are those of the set in deploy/, each verb of each resource.
func rights(t *testing.T) map[string]bool {
	t.Helper()
	out := rightsOf(t, "rights.yaml")
	for _, r := range slices.Sorted(maps.Keys(out)) {
		if strings.Contains(r, "*") {
			t.Errorf("%s: name what it is", r)
		}
	}
	return out
}

// rightsOf are those of a file in the folder deploy.
func rightsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for d := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal([]byte(d), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[right(role.Kind == "Role", verb, group, resource)] = true
					}
				}
			}
		}
	}
	return out
}

// right is a word for one; there: in the control plane's namespace alone. One of a whole cluster is
// used by calls that are not there.
func right(there bool, verb, group, resource string) string {
	where := "anywhere"
	if there {
		where = "in its namespace"
	}
	return verb + " " + group + "/" + resource + " " + where
}
