package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// remote is a publication of another cluster with a service, whose WorkloadEntries are put into
// what is kept of the API server.
type remote struct {
	*publication
	said []string
}

func (r *remote) Log(_ sdk.Level, message string, args ...any) {
	r.said = append(r.said, fmt.Sprint(append([]any{message}, args...)...))
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	w, err := watch(&kube.Client{}, true, func(any) {}, func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	i := cache.NewSharedIndexInformer(&cache.ListWatch{}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	w.entries.is = &informer{&kube.Informer{SharedIndexInformer: i}, "workloadentries"}
	s := object[corev1.Service](t, `
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.1, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 81, targetPort: manage}]}`)
	if err := w.services.GetStore().Add(s); err != nil {
		t.Fatal(err)
	}
	c, err := parse([]byte(`{"cluster": "west", "remote": "istio-system/west/west", "revision": "blue"}`))
	if err != nil {
		t.Fatal(err)
	}
	r := &remote{}
	r.publication = newPublication(&c, publisher{r})
	r.watched, r.network = w, "net-west"
	return r
}

// publisher logs; nothing is published by it.
type publisher struct{ *remote }

func (publisher) Update(string, []*sdk.Row, []string) error { return nil }
func (publisher) Synced() error                             { return nil }
func (publisher) State() (*state.State, <-chan struct{})    { return nil, nil }
func (p publisher) Log(level sdk.Level, message string, args ...any) {
	p.remote.Log(level, message, args...)
}

// set keeps a WorkloadEntry, and returns the services that are to be made anew.
func (r *remote) set(t *testing.T, text string) []string {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n"+text), &u.Object); err != nil {
		t.Fatal(err)
	}
	kept, err := leanEntry(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.watched.entries.informer().GetStore().Add(kept); err != nil {
		t.Fatal(err)
	}
	units := map[unit]bool{{kinds.WorkloadEntry, u.GetNamespace() + "/" + u.GetName()}: true}
	r.readEntries(units)
	var services []string
	for u := range units {
		if u.table == state.Services {
			services = append(services, u.key)
		}
	}
	return services
}

func (r *remote) rowsOf(u unit) map[string]map[string]*sdk.Row {
	rows, _ := r.rows(u)
	return rows
}

// behind are the addresses behind the service, as ADDRESS:PORT of its ports, in order.
func (r *remote) behind(t *testing.T) (out []string) {
	t.Helper()
	rows := r.rowsOf(unit{state.Services, "shop/web"})[state.Endpoints]
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		e, err := sdk.EndpointOf(rows[key])
		if err != nil {
			t.Fatal(err)
		}
		if e.Cluster != "west" || e.Host != "web.shop.svc.cluster.local" || !strings.HasSuffix(key, "#west") {
			t.Errorf("%s: %v", key, e)
		}
		out = append(out, fmt.Sprintf("%s %s:%d %s", e.PortName, e.Address, e.Port, e.Network))
	}
	return out
}

// TestEntries: WorkloadEntries of another cluster stand behind its services that select them, and
// are workloads for ServiceEntries.
func TestEntries(t *testing.T) {
	r := newRemote(t)
	check := func(what string, services []string, want ...string) {
		t.Helper()
		if got := r.behind(t); !slices.Equal(got, want) || len(services) != 1 {
			t.Errorf("%s: got %q, want %q; services to be made: %q", what, got, want, services)
		}
	}
	const vm = "metadata: {name: vm, namespace: shop%s}\nspec: {address: 10.70.0.1, serviceAccount: vm, labels: {app: web}, ports: {manage: 9999}%s}"
	check("one", r.set(t, fmt.Sprintf(vm, "", "")), "admin 10.70.0.1:9999 ", "http 10.70.0.1:8080 ")
	row := r.rowsOf(unit{kinds.WorkloadEntry, "shop/vm"})[state.Workloads][workloadentry.RemoteKey("shop", "vm", "west")]
	w, err := sdk.WorkloadOf(row)
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.Workload{
		Name: "vm", Namespace: "shop", Addresses: []string{"10.70.0.1"}, Labels: map[string]string{"app": "web"}, ServiceAccount: "vm",
		Ports: map[string]uint32{"manage": 9999}, Cluster: "west", TlsMode: "istio", Workload: "vm", Ready: true,
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Error(diff)
	}
	check("a network of its own", r.set(t, fmt.Sprintf(vm, "", ", network: far")), "admin 10.70.0.1:9999 far", "http 10.70.0.1:8080 far")
	check("that can't be used", r.set(t, "metadata: {name: vm, namespace: shop}\nspec: {address: '?', labels: {app: web}}"),
		"admin 10.70.0.1:9999 far", "http 10.70.0.1:8080 far")
	if len(r.said) != 1 || !strings.Contains(r.said[0], "shop/vm") {
		t.Errorf("said %q", r.said)
	}
	check("of another revision", r.set(t, fmt.Sprintf(vm, ", labels: {istio.io/rev: green}", "")))
	check("of this revision", r.set(t, fmt.Sprintf(vm, ", labels: {istio.io/rev: blue}", "")), "admin 10.70.0.1:9999 ", "http 10.70.0.1:8080 ")
	const checked = ", annotations: {proxy.istio.io/health-checks-enabled: 'true'}"
	check("not healthy", r.set(t, fmt.Sprintf(vm, checked, "")))
	check("healthy", r.set(t, fmt.Sprintf(vm, checked, "")+"\nstatus: {conditions: [{type: Healthy, status: 'True'}]}"),
		"admin 10.70.0.1:9999 ", "http 10.70.0.1:8080 ")
	check("with other labels", r.set(t, strings.Replace(fmt.Sprintf(vm, "", ""), "app: web", "app: db", 1)))
	if got := r.set(t, "metadata: {name: name, namespace: shop}\nspec: {address: vm.example.com, labels: {app: web}}"); len(got) != 1 || len(r.behind(t)) > 0 {
		t.Errorf("a name is no address of a cluster's service: %q", r.behind(t))
	}
	r.config.WorkloadEntries.Services = false
	if r.set(t, fmt.Sprintf(vm, "", "")); len(r.behind(t)) > 0 {
		t.Errorf("services don't select: %q", r.behind(t))
	}
	if r.rowsOf(unit{kinds.WorkloadEntry, "shop/vm"}) == nil {
		t.Error("ServiceEntries may")
	}
}
