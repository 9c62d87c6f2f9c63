package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// randomMesh is objects that come into the world, and the proxies that ask.
type randomMesh struct {
	objects []map[string]any
	proxies []proxy
	makes   kindsOfMesh
}

// newMesh makes one. Objects that istiod's own webhook refuses are left out; refused counts them.
func (g *gen) newMesh(valid func(map[string]any) bool, refused *int) randomMesh {
	m := randomMesh{objects: []map[string]any{g.settings()}}
	counts := map[string]int{}
	for range 2 + g.r.IntN(9) {
		k := weighted(g.r)
		namespace := pick(g.r, words("alpha alpha alpha beta "+rootNamespace))
		for range 6 { // until one is valid
			message := k.empty()
			was := g.density
			g.fill(message.ProtoReflect(), 0)
			g.density = was
			name := fmt.Sprintf("%s%d", k.short, counts[k.name+namespace])
			o := map[string]any{
				"apiVersion": k.apiVersion, "kind": k.name,
				"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec(message),
			}
			if valid(o) && !m.declares(o) {
				counts[k.name+namespace]++
				m.objects = append(m.objects, o)
				break
			}
			*refused++
			g.density *= 0.8
		}
	}
	m.proxies = g.proxies()
	if m.asksForNamespaces() { // a proxy that says no namespace: docs/differences.md
		m.proxies = slices.DeleteFunc(m.proxies, func(p proxy) bool { return p.Name == "bare" })
	}
	return m
}

// declares reports whether a ServiceEntry has a host that another one of its namespace has already:
// docs/differences.md says what then differs.
func (m randomMesh) declares(o map[string]any) bool {
	hostsOf := func(o map[string]any) []any {
		list, _ := o["spec"].(map[string]any)["hosts"].([]any)
		return list
	}
	return o["kind"] == "ServiceEntry" && slices.ContainsFunc(m.objects, func(other map[string]any) bool {
		return other["kind"] == "ServiceEntry" && other["metadata"].(map[string]any)["namespace"] == o["metadata"].(map[string]any)["namespace"] &&
			slices.ContainsFunc(hostsOf(other), func(h any) bool { return slices.Contains(hostsOf(o), h) })
	})
}

// asksForNamespaces reports whether matches ask for namespaces of clients.
func (m randomMesh) asksForNamespaces() bool {
	text, err := json.Marshal(m.objects)
	if err != nil {
		panic(err)
	}
	return bytes.Contains(text, []byte(`"sourceNamespace":`))
}

// settings is the ConfigMap of the mesh.
func (g *gen) settings() map[string]any {
	text, err := yaml.Marshal(g.meshConfig())
	if err != nil {
		panic(err)
	}
	return settingsOf(string(text))
}

func settingsOf(text string) map[string]any {
	networks := "networks:\n  net1: {gateways: [{address: 198.51.100.1, port: 15443}]}\n  net2: {gateways: [{address: " +
		"198.51.100.2, port: 15443}, {address: 198.51.100.3, port: 443}]}\n"
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "istio", "namespace": rootNamespace},
		"data": map[string]any{"mesh": text, "meshNetworks": networks}}
}

// judge is a pair of control planes on a cluster of its own, with the world in it.
type judge struct {
	t       *testing.T
	cluster *cluster
	// mirror has the same objects, where statuses are compared.
	mirror  *cluster
	peer    *kube.Istiod
	webhook string
	ours    string // where the control plane answers
	in      io.WriteCloser
	out     *json.Decoder
	known   map[string]schema.GroupVersionResource
	// there are the objects of the mesh that is in the cluster, by what names them.
	there map[string]map[string]any
	// marked and asked are how often both were asked, and what they wrote was.
	marked, asked int
	// words are what stands for certificates in manifests.
	words []string
	// renews has objects of the Gateway API and Ingresses made anew where they would change.
	renews bool
}

const markerNamespace = "marker"

// differs reports whether the two say different things to some proxy.
func (r reply) differs() bool {
	for _, f := range r.Proxies {
		if f.Report != "" {
			return true
		}
	}
	return false
}

// equal counts the resources that are equal.
func (r reply) equal() (n int) {
	for _, f := range r.Proxies {
		n += f.Tally.Equal
	}
	return n
}

// reply is what the tool answers.
type reply struct {
	Late    bool
	Error   string
	Proxies map[string]struct {
		Tally  tally
		Report string
	}
}

// newJudge starts both. With gateways there are the definitions of the Gateway API, too, and a
// mirror in which a control plane writes.
func newJudge(t *testing.T, gateways bool) *judge {
	c := newCluster(t)
	j := &judge{t: t, cluster: c, known: map[string]schema.GroupVersionResource{}, there: map[string]map[string]any{}}
	if gateways {
		j.words = certificate(t)
		j.mirror = c.second(t)
	}
	for _, c := range j.clusters() {
		if gateways {
			c.define(t, kube.ExperimentalGatewayAPI(t))
			c.Apply(t, c.injection(t)+classes)
		}
		c.Apply(t, world())
		if gateways {
			c.Apply(t, strings.NewReplacer(j.words...).Replace(worldOfGateways()))
		}
		c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+markerNamespace+"}")
		c.Apply(t,
			"apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: "+markerNamespace+"}\nspec: {egress: [{hosts: ['./*']}]}")
	}
	_, lists, err := c.about.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		at, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !strings.Contains(r.Name, "/") {
				j.known[l.GroupVersion+" "+r.Kind] = at.WithResource(r.Name)
			}
		}
	}
	settings := settingsOf("")
	if gateways {
		set(settings, "ingressService", "gateway")
	}
	j.move(nil, []map[string]any{settings})
	j.ours = mesh.Start(t, program, "", "--plugins", start{Statuses: gateways}.set(t, false), "--kubeconfig",
		c.Kubeconfig).XDS
	if gateways {
		mesh.Start(t, program, "", "--plugins", start{Statuses: true}.set(t, true), "--kubeconfig", c.mirror.Kubeconfig)
	}
	j.meet(kube.StartIstiod(t, c.Cluster))
	return j
}

// clusters are those that have the objects.
func (j *judge) clusters() []*cluster {
	if j.mirror == nil {
		return []*cluster{j.cluster}
	}
	return []*cluster{j.cluster, j.mirror}
}

// written compares what both have written of a mesh's objects, if it has any of the kinds that are
// written into.
func (j *judge) written(makes kindsOfMesh) (r report) {
	if !makes.gateway {
		return r
	}
	j.asked++
	return j.cluster.compareWritten(j.t, j.asked)
}

// meet has the judge ask an istiod.
func (j *judge) meet(peer *kube.Istiod) {
	j.peer, j.webhook = peer, "http://"+peer.HTTP+"/validate"
	j.in, j.out = startTool(j.t, j.ours, peer.XDS)
}

// renew starts istiod anew: it remembers things that are gone (docs/differences.md), and what it
// says then must not depend on them.
func (j *judge) renew() {
	_ = j.in.Close()
	j.peer.Stop()
	j.meet(kube.StartIstiod(j.t, j.cluster.Cluster))
}

func name(o map[string]any) string {
	meta := o["metadata"].(map[string]any)
	return fmt.Sprintf("%s %s %s %s", o["apiVersion"], o["kind"], meta["namespace"], meta["name"])
}

// valid asks istiod's webhook.
func (j *judge) valid(o map[string]any) bool {
	meta := o["metadata"].(map[string]any)
	group, version, _ := strings.Cut(o["apiVersion"].(string), "/")
	review, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{"uid": "1", "operation": "CREATE",
			"kind": map[string]any{"group": group, "version": version, "kind": o["kind"]}, "name": meta["name"], "namespace": meta["namespace"], "object": o},
	})
	if err != nil {
		panic(err)
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Post(j.webhook, "application/json", bytes.NewReader(review))
	if err != nil { // some meshes end it
		j.renew()
		resp, err = client.Post(j.webhook, "application/json", bytes.NewReader(review))
	}
	if err != nil {
		j.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Response *struct {
			Allowed bool
			Status  struct{ Message string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Response == nil {
		j.t.Fatalf("istiod's webhook: %s: %v", resp.Status, err)
	}
	if !answer.Response.Allowed && *verbose {
		fmt.Printf("REFUSED %s: %.200s\n", o["kind"], answer.Response.Status.Message)
	}
	return answer.Response.Allowed
}

// move makes the clusters hold these objects instead of those that they hold, and returns those
// that the API servers took. Objects that stay are changed in place.
func (j *judge) move(old map[string]map[string]any, objects []map[string]any) (taken []map[string]any) {
	next := map[string]map[string]any{}
	for _, o := range objects {
		next[name(o)] = o
	}
	if j.mirror != nil {
		objects = slices.Clone(objects)
		slices.SortStableFunc(objects, byAge)
	}
	var wg sync.WaitGroup
	oks := make([][]bool, len(j.clusters()))
	for n, c := range j.clusters() {
		wg.Go(func() { oks[n] = j.moveIn(c, old, next, objects) })
	}
	wg.Wait()
	j.there = map[string]map[string]any{}
	for i, o := range objects {
		if ok := oks[0][i]; ok != oks[len(oks)-1][i] {
			j.t.Fatalf("one of two API servers takes %s", name(o))
		} else if ok {
			taken, j.there[name(o)] = append(taken, o), o
		} else if was := old[name(o)]; was != nil && !j.replaces(o) {
			j.there[name(o)] = was
		}
	}
	return taken
}

// replaces reports whether objects of a kind are made anew where they would change: an istiod keeps
// what a WorkloadEntry was before; what random meshes have in common are names alone.
func (j *judge) replaces(o map[string]any) bool {
	return o["kind"] == "WorkloadEntry" || j.renews && isOfGateways(o)
}

// moveIn does that in one cluster, and says of which objects. With a mirror they are made one after
// the other.
func (j *judge) moveIn(c *cluster, old, next map[string]map[string]any, objects []map[string]any) (ok []bool) {
	var wg sync.WaitGroup
	ctx, now := context.Background(), int64(0)
	gate := make(chan struct{}, 8)
	run := func(f func()) {
		wg.Go(func() { gate <- struct{}{}; defer func() { <-gate }(); f() })
	}
	client := func(o map[string]any) dynamic.ResourceInterface {
		at, ok := j.known[o["apiVersion"].(string)+" "+o["kind"].(string)]
		if !ok {
			j.t.Fatalf("the API server knows no %s %s", o["apiVersion"], o["kind"])
		}
		return c.objects.Resource(at).Namespace(o["metadata"].(map[string]any)["namespace"].(string))
	}
	gone := false
	for key, o := range old {
		if next[key] == nil || j.replaces(o) && !reflect.DeepEqual(next[key], o) {
			gone = gone || o["kind"] == "Gateway"
			run(func() {
				if err := client(o).Delete(ctx, o["metadata"].(map[string]any)["name"].(string),
					v1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
					j.t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if gone {
		c.collect(j.t)
	}
	ok = make([]bool, len(objects))
	for i, o := range objects {
		if reflect.DeepEqual(old[name(o)], o) {
			ok[i] = true
			continue
		}
		run(func() {
			b, err := json.Marshal(o)
			if err != nil {
				panic(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(b); err != nil {
				panic(err)
			}
			_, err = client(o).Apply(ctx, u.GetName(), u, v1.ApplyOptions{FieldManager: "meshes", Force: true})
			if err == nil && o["kind"] == "Pod" {
				_, err = client(o).Apply(ctx, u.GetName(), u, v1.ApplyOptions{FieldManager: "meshes", Force: true}, "status")
			}
			ok[i] = err == nil
			if err != nil && *verbose {
				fmt.Printf("REFUSED by the API server: %s: %v\n", name(o), err)
			}
		})
		if j.mirror != nil {
			wg.Wait()
		}
	}
	wg.Wait()
	return ok
}

// markerProxy sees nothing but the marker.
var markerProxy = newProxy("sidecar", "marker", "marker", markerNamespace, "10.99.0.1", map[string]any{})

// ask has the tool compare what both say to the proxies, once both have seen the objects. Answers
// that differ must have been the same for the duration still.
func (j *judge) ask(proxies []proxy, still time.Duration) reply {
	j.marked++
	host := fmt.Sprintf("m%d.marker", j.marked)
	marker := map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
		"metadata": map[string]any{"name": "marker", "namespace": markerNamespace},
		"spec": map[string]any{
			"hosts": []any{host}, "ports": []any{map[string]any{"number": 80, "name": "http", "protocol": "HTTP"}},
			"resolution": "NONE", "exportTo": []any{"."},
		},
	}
	there := j.there
	if len(j.move(nil, []map[string]any{marker})) == 0 {
		j.t.Fatal("the API server takes no marker")
	}
	j.there = there
	q := map[string]any{
		"await": "outbound|80||" + host, "marker": markerProxy.Node, "patience": 3000, "still": still.Milliseconds(),
		"diff": *differing, "proxies": proxies,
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	if _, err := j.in.Write(append(b, '\n')); err != nil {
		j.t.Fatal(err)
	}
	var r reply
	if err := j.out.Decode(&r); err != nil {
		j.t.Fatalf("the tool that compares: %v", err)
	}
	return r
}

// write makes a state folder of a mesh.
func (m randomMesh) write(dir, title string) error {
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o755); err != nil {
		return err
	}
	var all []string
	for _, o := range m.objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		all = append(all, string(text))
	}
	about, err := yaml.Marshal(map[string]any{"title": title, "proxies": m.proxies})
	if err != nil {
		return err
	}
	texts := map[string]string{"objects/1-world.yaml": world(), "objects/2-mesh.yaml": strings.Join(all, "---\n"),
		"case.yaml": string(about)}
	if m.makes.gateway {
		texts["objects/1-world.yaml"] += "\n---\n" + worldOfGateways()
		texts["start.yaml"] = "gatewayAPI: true\nexperimental: true\nstatuses: true\n"
	}
	for file, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
