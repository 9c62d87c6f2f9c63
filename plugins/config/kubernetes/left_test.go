package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// answers is an API server that says what a map has, by path and query.
type answers struct {
	mu  sync.Mutex
	all map[string]string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := r.URL.Query()
	at := r.URL.Path
	if s := query.Get("labelSelector"); s != "" {
		at += "?" + s
	}
	w.Header().Set("Content-Type", "application/json")
	switch text := a.all[at]; text {
	case "":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case "forbidden":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	default:
		fmt.Fprint(w, text)
	}
}

// objectList is a list of objects, each of namespace/name and more of its JSON.
func objectList(version, kind string, objects ...string) string {
	var items []string
	for _, o := range objects {
		name, more, _ := strings.Cut(o, " ")
		namespace, name, _ := strings.Cut(name, "/")
		meta, spec, _ := strings.Cut(more, " ")
		if meta != "" {
			meta = "," + meta
		}
		if spec != "" {
			spec = "," + spec
		}
		items = append(items, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q%s}%s}`, version, kind, namespace, name, meta, spec))
	}
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"items":[%s]}`, kind, version, strings.Join(items, ","))
}

func groupList(names ...string) string {
	var all []string
	for _, n := range names {
		group, version, _ := strings.Cut(n, "/")
		all = append(all, fmt.Sprintf(`{"name":%q,"preferredVersion":{"groupVersion":%q,"version":%q}}`, group, n, version))
	}
	return `{"kind":"APIGroupList","groups":[` + strings.Join(all, ",") + `]}`
}

func resourceList(at string, kinds ...string) string {
	var all []string
	for _, k := range kinds {
		resource, kind, _ := strings.Cut(k, " ")
		all = append(all, fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":true,"verbs":["list","watch"]}`, resource, kind))
	}
	return fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, at, strings.Join(all, ","))
}

// TestUninjected: namespaces that ask for proxies where nobody puts any into pods are told of, with
// the reason; those of another revision are somebody else's.
func TestUninjected(t *testing.T) {
	named := func(names ...string) string { return objectList("v1", "Namespace", names...) }
	const at = "/api/v1/namespaces?"
	a := &answers{all: map[string]string{
		"/apis":                        groupList("apps/v1"),
		at + "istio-injection=enabled": named("/shop", "/web"),
		at + "istio.io/rev,istio-injection!=disabled":        named("/canary", "/web"),
		at + "istio.io/rev=canary,istio-injection!=disabled": named("/canary"),
		at + "istio.io/dataplane-mode=ambient":               named(`/old "labels":{"istio.io/dataplane-mode":"ambient"}`),
	}}
	s := connected(t, a)
	for _, c := range []struct {
		revision, why string
		want          []string
	}{
		{"", "", nil},
		{"", "--readOnly", []string{"3 are left out, such as canary: its pods get no proxy of this control plane: --readOnly"}},
		{"default", "--readOnly", []string{"3 are left out, such as canary: its pods get no proxy of this control plane: --readOnly"}},
		{"canary", "nobody", []string{"canary is left out: its pods get no proxy of this control plane: nobody"}},
	} {
		found, err := newLeftOut(s, Config{Revision: c.revision, Uninjected: c.why}, func(sdk.Level, string, ...any) {}).look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := append([]string{"old is left out: istio.io/dataplane-mode: ambient is not served; sidecars are"}, c.want...)
		var got []string
		for _, f := range found {
			got = append(got, f.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("revision %q, %q: %s", c.revision, c.why, diff)
		}
	}
}

// connected is a connection to such an API server.
func connected(t *testing.T, a *answers) *server {
	t.Helper()
	at := httptest.NewServer(a)
	t.Cleanup(at.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{clusters: [{name: a, cluster: {server: '" + at.URL + "'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	access := kube.DefaultAccess()
	access.Kubeconfig = file
	s, err := connect(Config{Access: access})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLeftOut: what a cluster has and nobody serves here is counted by kind, as files are judged;
// what may not be read is said once; and what is gone is not counted any more.
func TestLeftOut(t *testing.T) {
	const selector = "/api/v1/%s?istio.io/dataplane-mode=ambient"
	a := &answers{all: map[string]string{
		"/apis": groupList("gateway.networking.k8s.io/v1",
			"rbac.istio.io/v1alpha1", "apps/v1", "networking.istio.io/v1"),
		"/apis/gateway.networking.k8s.io/v1": resourceList("gateway.networking.k8s.io/v1",
			"gateways Gateway", "xmeshes XMesh", "xmeshes/status XMesh"),
		"/apis/rbac.istio.io/v1alpha1":                                   resourceList("rbac.istio.io/v1alpha1", "serviceroles ServiceRole"),
		"/apis/gateway.networking.k8s.io/v1/xmeshes":                     objectList("gateway.networking.k8s.io/v1", "XMesh", "shop/b", "shop/a"),
		"/apis/rbac.istio.io/v1alpha1/serviceroles":                      "forbidden",
		fmt.Sprintf(selector, "namespaces"):                              objectList("v1", "Namespace", `/shop "labels":{"istio.io/dataplane-mode":"ambient"}`),
		fmt.Sprintf(selector, "pods"):                                    objectList("v1", "Pod"),
		"/api/v1/pods?istio.io/use-waypoint,istio.io/use-waypoint!=none": objectList("v1", "Pod", `shop/web-1 "labels":{"istio.io/use-waypoint":"w"}`),
	}}
	s := connected(t, a)
	var said []string
	l := newLeftOut(s, Config{}, func(_ sdk.Level, text string, args ...any) { said = append(said, fmt.Sprint(text, args)) })
	look := func(want ...string) []kinds.Fault {
		t.Helper()
		found, err := l.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprintf("%s %d: %s", f.File, f.Left, strings.SplitN(f.Message, ":", 2)[0]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		return found
	}
	found := look("k8s://Namespace 1: shop is left out", "k8s://Pod 1: shop/web-1 is left out",
		"k8s://gateway.networking.k8s.io/XMesh 2: 2 are left out, such as shop/a")
	if got, want := kinds.LeftOut(found), "4 resources left out: 1 Namespace, 1 Pod, 2 XMesh"; got != want {
		t.Errorf("%q", got)
	}
	a.mu.Lock()
	a.all["/apis/gateway.networking.k8s.io/v1/xmeshes"] = objectList("gateway.networking.k8s.io/v1", "XMesh")
	a.mu.Unlock()
	look("k8s://Namespace 1: shop is left out", "k8s://Pod 1: shop/web-1 is left out")
	if len(said) != 1 || !strings.Contains(said[0], "serviceroles.rbac.istio.io") {
		t.Errorf("%q", said)
	}
	a.mu.Lock()
	delete(a.all, "/apis")
	a.mu.Unlock()
	if _, err := l.look(t.Context()); err == nil {
		t.Error("an API server that doesn't say what it has leaves nothing out")
	}
}
