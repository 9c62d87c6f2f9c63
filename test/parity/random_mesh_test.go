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
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kube"
)

// randomMesh is objects that come into the world, and the proxies that ask.
type randomMesh struct {
	objects []map[string]any
	proxies []proxy
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
	peer    *kube.Istiod
	webhook string
	ours    string // where the control plane answers
	in      io.WriteCloser
	out     *json.Decoder
	known   map[string]schema.GroupVersionResource
	// there are the objects of the mesh that is in the cluster, by what names them.
	there  map[string]map[string]any
	marked int
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

func newJudge(t *testing.T) *judge {
	c := newCluster(t)
	c.Apply(t, world())
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+markerNamespace+"}")
	c.Apply(t,
		"apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: "+markerNamespace+"}\nspec: {egress: [{hosts: ['./*']}]}")
	j := &judge{t: t, cluster: c, known: map[string]schema.GroupVersionResource{}, there: map[string]map[string]any{}}
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
	j.move(nil, []map[string]any{settingsOf("")})
	peer, plane := startPair(t, c)
	j.ours = plane
	j.meet(peer)
	return j
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

// move makes the cluster hold these objects instead of those that it holds, and returns those that
// the API server took. Objects that stay are changed in place.
func (j *judge) move(old map[string]map[string]any, objects []map[string]any) (taken []map[string]any) {
	var wg sync.WaitGroup
	ctx, now := context.Background(), int64(0)
	gate := make(chan struct{}, 8)
	run := func(f func()) {
		wg.Go(func() { gate <- struct{}{}; defer func() { <-gate }(); f() })
	}
	next := map[string]map[string]any{}
	for _, o := range objects {
		next[name(o)] = o
	}
	client := func(o map[string]any) interface {
		Delete(context.Context, string, v1.DeleteOptions, ...string) error
		Apply(context.Context, string, *unstructured.Unstructured, v1.ApplyOptions, ...string) (*unstructured.Unstructured, error)
	} {
		at, ok := j.known[o["apiVersion"].(string)+" "+o["kind"].(string)]
		if !ok {
			j.t.Fatalf("the API server knows no %s %s", o["apiVersion"], o["kind"])
		}
		return j.cluster.objects.Resource(at).Namespace(o["metadata"].(map[string]any)["namespace"].(string))
	}
	for key, o := range old {
		if next[key] == nil || o["kind"] == "WorkloadEntry" && !reflect.DeepEqual(next[key], o) { // an istiod keeps what one was before it was changed
			run(func() {
				if err := client(o).Delete(ctx, o["metadata"].(map[string]any)["name"].(string),
					v1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
					j.t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	ok := make([]bool, len(objects))
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
	}
	wg.Wait()
	j.there = map[string]map[string]any{}
	for i, o := range objects {
		if ok[i] {
			taken, j.there[name(o)] = append(taken, o), o
		} else if was := old[name(o)]; was != nil {
			j.there[name(o)] = was
		}
	}
	return taken
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
	for file, text := range map[string]string{"objects/1-world.yaml": world(), "objects/2-mesh.yaml": strings.Join(all, "---\n"), "case.yaml": string(about)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
