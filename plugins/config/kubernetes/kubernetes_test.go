package kubernetes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "istio.io/api/mesh/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestLean: what is kept of an object is what a file would say of it.
func TestLean(t *testing.T) {
	sent := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: web
  namespace: shop
  uid: 6ff8
  resourceVersion: "7"
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: web}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
  managedFields: [{manager: kubectl}]
spec: {hosts: [web.example], resolution: DNS}
status: {addresses: [{value: 240.240.0.1}]}`), &sent.Object); err != nil {
		t.Fatal(err)
	}
	got, err := lean(sent)
	o, ok := got.(*object)
	if err != nil || !ok || o.Name != "web" || o.Namespace != "shop" || o.ResourceVersion != "7" || o.Labels["app"] != "web" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, gone := range []string{"uid", "6ff8", "managedFields", "last-applied", "resourceVersion"} {
		if strings.Contains(string(o.text), gone) {
			t.Errorf("%s is kept: %s", gone, o.text)
		}
	}
	docs := kinds.Read("x", o.text)
	if len(docs) != 1 || docs[0].Row == nil || len(docs[0].Faults) > 0 {
		t.Fatalf("%+v", docs)
	}
	row := docs[0].Row
	if diff := cmp.Diff(map[string]string{"note": "kept", kinds.AutoAddresses: `[{"value":"240.240.0.1"}]`}, row.Annotations); diff != "" || row.Created == 0 {
		t.Error(diff, row.Created)
	}
	if again, err := lean(o); again != got || err != nil {
		t.Error(again, err)
	}
}

func TestRevisions(t *testing.T) {
	for _, c := range []struct {
		own, label string
		concerns   bool
	}{{"", "", true}, {"", "green", true}, {"blue", "", true}, {"blue", "blue", true}, {"blue", "green", false}} {
		labels := map[string]string{}
		if c.label != "" {
			labels["istio.io/rev"] = c.label
		}
		if got := (&publication{revision: c.own}).concerns(labels); got != c.concerns {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"qps": 0}`: "qps", `{"burst": 0}`: "burst", `{"kubeconfi": "x"}`: "kubeconfi",
		`{"revision": 1}`: "revision",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := connect(Config{Access: kube.Access{Kubeconfig: filepath.Join(t.TempDir(), "none")}}); err == nil {
		t.Error("a kubeconfig that isn't there is taken")
	}
}

// kubeconfig is a file with an API server that nobody runs.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadme: the README's config is one, and makes clients.
func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	c, err := parse(config)
	if err != nil || c.Revision != "blue" {
		t.Fatalf("%+v, %v", c, err)
	}
	c.Kubeconfig = kubeconfig(t)
	if _, err := connect(c); err != nil {
		t.Error(err)
	}
}

// TestSelection: selectors count once the namespaces are known, and a namespace that changes has
// all its objects looked at again.
func TestSelection(t *testing.T) {
	server, err := connect(Config{Access: kube.Access{Kubeconfig: kubeconfig(t), QPS: 1, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const table = "networking.istio.io/VirtualService"
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no informer runs
	synced := &informer{}
	w := &watched{server: server, changed: func(key) {}, failed: func(string, error) {}, informers: map[string]cache.SharedIndexInformer{}}
	p := &publication{watched: w}
	if err := errors.Join(w.add(ctx, table, schema.GroupVersionResource{Resource: "virtualservices"}, lean), w.addNamespaces(ctx)); err != nil {
		t.Fatal(err)
	}
	w.running.Wait()
	synced.SharedIndexInformer = w.informers[state.Namespaces]
	w.informers[state.Namespaces] = synced
	a, b := key{table, "a/web"}, key{table, "b/web"}
	for _, n := range []string{"a", "b"} {
		if err := w.informers[table].GetStore().Add(&object{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	label := func(namespace string, labels map[string]string) {
		t.Helper()
		if err := synced.GetStore().Add(&object{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(changed map[key]bool, want ...key) {
		t.Helper()
		all := map[key]bool{}
		for _, k := range want {
			all[k] = true
		}
		if diff := cmp.Diff(all, p.apply(changed), cmp.AllowUnexported(key{})); diff != "" {
			t.Error(diff)
		}
	}
	none := func() map[key]bool { return map[key]bool{} }
	looks(map[key]bool{a: true, {state.Namespaces, "b"}: true}, a) // without selectors a namespace says nothing
	payload, err := kinds.Encode(&api.MeshConfig{DiscoverySelectors: []*api.LabelSelector{{MatchLabels: map[string]string{"mesh": "yes"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var builder state.Builder
	change, err := builder.Apply(&pb.State{Whole: true, Tables: []*pb.TableRows{{Table: state.Mesh, Upserts: []*pb.Row{{Key: state.Mesh, Payload: payload}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.choose(ctx, change.State); err != nil {
		t.Fatal(err)
	}
	looks(none())
	if !p.counts("b") {
		t.Error("selectors count before the namespaces are known")
	}
	label("a", map[string]string{"mesh": "yes"})
	synced.all = true
	looks(none(), a, b)
	if !p.counts("a") || p.counts("b") {
		t.Errorf("a counts: %v, b counts: %v", p.counts("a"), p.counts("b"))
	}
	looks(none())
	label("b", map[string]string{"mesh": "yes"})
	looks(map[key]bool{{state.Namespaces, "b"}: true}, b)
	if !p.counts("b") {
		t.Error("b does not count")
	}
	if err := p.choose(ctx, &state.State{}); err != nil {
		t.Fatal(err)
	}
	looks(none(), a, b)
	if !p.counts("c") {
		t.Error("without selectors c does not count")
	}
}

// informer is one that reports whether it has synced.
type informer struct {
	cache.SharedIndexInformer
	all bool
}

func (i *informer) HasSynced() bool { return i.all }
