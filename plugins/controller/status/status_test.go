package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	judge "github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// server plays an API server's objects.
type server struct {
	t  *testing.T
	mu sync.Mutex
	// objects by TABLE/KEY, versions as they are counted.
	objects map[string]fields
	version int
	// writes are the keys whose status was written, in order.
	writes []string
	// before is called before each request; what it returns is the answer.
	before func(*pb.Store) *pb.Stored
	// prune is what definitions have not.
	prune string
}

func newServer(t *testing.T, h *plugintest.Harness) *server {
	s := &server{t: t, objects: map[string]fields{}}
	h.OnStore(s.answer)
	return s
}

func (s *server) has(table, text string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	var o fields
	if err := decode(j, &o); err != nil {
		s.t.Fatal(err)
	}
	s.put(key(table, o), o)
}

func key(table string, o fields) string {
	meta := o["metadata"].(fields)
	if n := word(meta, "namespace"); n != "" {
		return table + "/" + n + "/" + word(meta, "name")
	}
	return table + "/" + word(meta, "name")
}

func (s *server) put(key string, o fields) {
	s.version++
	meta := maps.Clone(o["metadata"].(fields))
	meta["resourceVersion"] = strconv.Itoa(s.version)
	o = maps.Clone(o)
	o["metadata"] = meta
	s.objects[key] = o
}

func (s *server) text(key string) []byte {
	text, err := json.Marshal(s.objects[key])
	if err != nil {
		s.t.Error(err)
	}
	return text
}

func (s *server) answer(m *pb.Store) *pb.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		if a := s.before(m); a != nil {
			return a
		}
	}
	k := m.Table + "/" + m.Name
	if m.Namespace != "" {
		k = m.Table + "/" + m.Namespace + "/" + m.Name
	}
	switch m.Verb {
	case pb.VerbGet:
		if s.objects[k] == nil {
			return &pb.Stored{Code: sdk.StoreNotFound, Error: "none"}
		}
		return &pb.Stored{Object: s.text(k)}
	case pb.VerbList:
		return s.list(m)
	}
	var o fields
	if err := decode(m.Object, &o); err != nil {
		return &pb.Stored{Code: sdk.StoreInvalid, Error: err.Error()}
	}
	k = key(m.Table, o)
	was := s.objects[k]
	switch {
	case m.Verb == pb.VerbCreate && was != nil:
		return &pb.Stored{Code: sdk.StoreAlreadyExists, Error: "there is one"}
	case m.Verb == pb.VerbCreate:
	case was == nil:
		return &pb.Stored{Code: sdk.StoreNotFound, Error: "none"}
	case was["metadata"].(fields)["resourceVersion"] != o["metadata"].(fields)["resourceVersion"]:
		return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
	default:
		s.writes = append(s.writes, k)
		if s.prune != "" {
			delete(o["status"].(fields), s.prune)
		}
		now := maps.Clone(was)
		now["status"] = o["status"]
		o = now
	}
	s.put(k, o)
	return &pb.Stored{Object: s.text(k)}
}

func (s *server) list(m *pb.Store) *pb.Stored {
	var keys []string
	for k := range s.objects {
		if strings.HasPrefix(k, m.Table+"/") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	from, _ := strconv.Atoi(m.Page)
	out := &pb.Stored{}
	for i, k := range keys[from:] {
		if i == int(m.Limit) {
			out.Page = strconv.Itoa(from + i)
			break
		}
		out.Objects = append(out.Objects, s.text(k))
	}
	return out
}

// says waits until the status of an object has these words, and returns it.
func (s *server) says(k string, words ...string) string {
	s.t.Helper()
	var text string
	wait.For(s.t, fmt.Sprintf("%s says %q", k, words), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		status, err := json.Marshal(s.objects[k]["status"])
		text = string(status)
		for _, w := range words {
			if without, no := strings.CutPrefix(w, "!"); err == nil && strings.Contains(text, without) == no {
				err = fmt.Errorf("it says %s", text)
			}
		}
		return err
	})
	return text
}

func (s *server) written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

func routeText(name string, generation int) string {
	return fmt.Sprintf(`{metadata: {name: %s, namespace: shop, generation: %d}, spec: {a: b}, status: {parents: `+
		`[{parentRef: {name: x}, controllerName: example.com/other, conditions: []}]}}`, name, generation)
}

// judged is a row that says something of a route.
func judged(t *testing.T, name string, generation int64, message string) *sdk.Row {
	t.Helper()
	text, err := json.Marshal(map[string]any{"parents": []any{map[string]any{
		"parentRef": map[string]any{"name": "edge"}, "controllerName": judge.Controller,
		"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "reason": "Accepted", "message": message}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return rowOf(t, gatewayapi.HTTPRoute, "shop/"+name,
		&gatewayapi.Judged{Generation: generation, Status: text, Controllers: []gateway.GatewayController{judge.Controller}})
}

func rowOf(t *testing.T, table, key string, j *gatewayapi.Judged) *sdk.Row {
	t.Helper()
	r, err := j.Row(gatewayapi.StatusKey(table, key), &sdk.Row{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const web = gatewayapi.HTTPRoute + "/shop/web"

// TestWrites: a status is written beside others' entries, once; again when something else is to be
// said, when the object has another generation, and when others say something meanwhile; and it is
// taken back when nothing is to be said any more.
func TestWrites(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000}`))
	s := newServer(t, h)
	s.has(gatewayapi.HTTPRoute, routeText("web", 1))
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "web", 1, "first")})
	s.says(web, "example.com/other", `"message":"first"`, `"observedGeneration":1`)
	refuse := 2
	s.before = func(m *pb.Store) *pb.Stored {
		if m.Verb == pb.VerbUpdateStatus && refuse > 0 {
			refuse--
			return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
		}
		return nil
	}
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "web", 1, "second")})
	s.says(web, "example.com/other", `"message":"second"`)
	s.mu.Lock()
	o := maps.Clone(s.objects[web])
	meta := maps.Clone(o["metadata"].(fields))
	meta["generation"] = json.Number("2")
	o["metadata"] = meta
	s.put(web, o)
	s.mu.Unlock()
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "web", 1, "of the spec before")})
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "web", 2, "third")})
	s.says(web, `"message":"third"`, `"observedGeneration":2`)
	for _, k := range s.written() {
		if k != web {
			t.Errorf("%s was written", k)
		}
	}
	if n := len(s.written()); n != 3 {
		t.Errorf("it was written %d times", n)
	}
	h.Update(gatewayapi.Statuses, nil, gatewayapi.StatusKey(gatewayapi.HTTPRoute, "shop/web"))
	s.says(web, "example.com/other", "!istio.io/gateway-controller")
}

// TestMadeAgain: an object that was deleted and made again has no status, and gets the same one as
// before; not that of the object before.
func TestMadeAgain(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000}`))
	s := newServer(t, h)
	of := func(uid string) *sdk.Row {
		j, err := gatewayapi.DecodeJudged(judged(t, "web", 1, "first"))
		if err != nil {
			t.Fatal(err)
		}
		j.UID = uid
		return rowOf(t, gatewayapi.HTTPRoute, "shop/web", j)
	}
	for _, uid := range []string{"a", "b"} {
		s.has(gatewayapi.HTTPRoute, `{metadata: {name: web, namespace: shop, generation: 1, uid: `+uid+`}, spec: {a: b}}`)
		h.Update(gatewayapi.Statuses, []*sdk.Row{of(uid)})
		s.says(web, `"message":"first"`)
	}
	s.has(gatewayapi.HTTPRoute, `{metadata: {name: web, namespace: shop, generation: 1, uid: c}, spec: {a: b}}`)
	s.has(gatewayapi.HTTPRoute, routeText("next", 1))
	next, err := gatewayapi.DecodeJudged(judged(t, "next", 1, "last"))
	if err != nil {
		t.Fatal(err)
	}
	changed := of("b")
	changed.Payload = bytes.ReplaceAll(changed.Payload, []byte("first"), []byte("second"))
	h.Update(gatewayapi.Statuses, []*sdk.Row{changed})
	h.Update(gatewayapi.Statuses, []*sdk.Row{rowOf(t, gatewayapi.HTTPRoute, "shop/next", next)})
	s.says(gatewayapi.HTTPRoute+"/shop/next", `"message":"last"`)
	if got := s.written(); len(got) != 3 {
		t.Errorf("written: %v", got)
	}
}

// TestReadAhead: the objects of a large change are read by the page; one that changes meanwhile is
// read again, and one that is gone is left.
func TestReadAhead(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000}`))
	s := newServer(t, h)
	const count = 250
	var rows []*sdk.Row
	for i := range count {
		name := fmt.Sprintf("r%03d", i)
		rows = append(rows, judged(t, name, 1, "of "+name))
		if i != 120 {
			s.has(gatewayapi.HTTPRoute, routeText(name, 1))
		}
	}
	asked := map[pb.Verb]int{}
	conflicts := map[string]bool{"r007": true, "r140": true}
	s.before = func(m *pb.Store) *pb.Stored {
		asked[m.Verb]++
		if m.Verb != pb.VerbUpdateStatus {
			return nil
		}
		o, err := read(m.Object)
		if err != nil || !conflicts[o.meta.Name] {
			return nil
		}
		delete(conflicts, o.meta.Name)
		return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
	}
	h.Update(gatewayapi.Statuses, rows)
	for i := range count {
		if i != 120 {
			s.says(fmt.Sprintf("%s/shop/r%03d", gatewayapi.HTTPRoute, i), fmt.Sprintf(`"message":"of r%03d"`, i),
				"example.com/other")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked[pb.VerbGet] != 3 || asked[pb.VerbList] != 3 || asked[pb.VerbUpdateStatus] != count+1 {
		t.Errorf("asked: %v", asked)
	}
}

// TestLeft: what is gone, has no definition, or is another revision's is left alone, and does not
// keep the others from being written; what an API server refuses is not written again and again.
func TestLeft(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000, "revision": "canary"}`))
	s := newServer(t, h)
	s.before = func(m *pb.Store) *pb.Stored {
		switch {
		case m.Table == gatewayapi.TLSRoute:
			return &pb.Stored{Code: sdk.StoreUnsupported, Error: "the API server has no definition of it"}
		case m.Verb == pb.VerbUpdateStatus && strings.Contains(string(m.Object), `"bad"`):
			s.writes = append(s.writes, "bad")
			return &pb.Stored{Code: sdk.StoreInvalid, Error: "status.parents: is bad"}
		}
		return nil
	}
	s.has(gatewayapi.HTTPRoute, strings.Replace(routeText("theirs", 1), "name: theirs", "name: theirs, labels: {istio.io/rev: other}", 1))
	s.has(gatewayapi.HTTPRoute, routeText("bad", 1))
	s.has(gatewayapi.HTTPRoute, routeText("web", 1))
	tls := judged(t, "web", 1, "m")
	tls.Key = gatewayapi.StatusKey(gatewayapi.TLSRoute, "shop/web")
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "gone", 1, "m"), judged(t, "theirs", 1, "m"), judged(t, "bad", 1, "m"), judged(t, "web", 1, "m"), tls,
		{Key: "what/is/this", Payload: []byte("{}")}, {Key: gatewayapi.StatusKey(gatewayapi.HTTPRoute, "shop/broken"), Payload: []byte("{")}})
	s.says(web, `"message":"m"`)
	s.says(gatewayapi.HTTPRoute+"/shop/theirs", "!istio.io")
	if got := s.written(); len(got) > 3 {
		t.Errorf("written: %q", got)
	}
}

// TestPruned: an API server that keeps less than was written is not written to again; then
// something else is to be said, and is.
func TestPruned(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000, "look": "1s"}`))
	s := newServer(t, h)
	s.prune = "attachedListenerSets"
	s.has(gatewayapi.Gateway, "{metadata: {name: edge, namespace: shop, generation: 1}}")
	k := gatewayapi.Gateway + "/shop/edge"
	say := func(message string) {
		h.Update(gatewayapi.Statuses, []*sdk.Row{rowOf(t, gatewayapi.Gateway, "shop/edge", &gatewayapi.Judged{Generation: 1, Status: []byte(
			`{"attachedListenerSets": 1, "conditions": [{"type": "Accepted", "status": "True", "reason": "R", "message": "` + message + `"}]}`)})})
	}
	say("first")
	s.says(k, "first", "!attachedListenerSets")
	looks := 0
	s.mu.Lock()
	s.before = func(m *pb.Store) *pb.Stored {
		if m.Verb == pb.VerbList && m.Table == gatewayapi.Gateway {
			looks++
		}
		return nil
	}
	s.mu.Unlock()
	wait.For(t, "it was looked at again", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if looks < 2 {
			return fmt.Errorf("%d times", looks)
		}
		return nil
	})
	if n := len(s.written()); n != 1 {
		t.Errorf("it was written %d times", n)
	}
	say("second")
	s.says(k, "second")
}

// TestLook: what somebody else changes of ours is written again; what an earlier replica has left
// is taken back, but not at once.
func TestLook(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000, "look": "1s"}`))
	s := newServer(t, h)
	s.has(gatewayapi.HTTPRoute, routeText("web", 1))
	left := `{metadata: {name: left, namespace: shop, generation: 1}, status: {parents: [{parentRef: {name: x}, ` +
		`controllerName: istio.io/gateway-controller, conditions: []}]}}`
	s.has(gatewayapi.HTTPRoute, left)
	h.Update(gatewayapi.Statuses, []*sdk.Row{judged(t, "web", 1, "ours")})
	s.says(web, "ours")
	s.has(gatewayapi.HTTPRoute, routeText("web", 1))
	s.says(web, "ours")
	s.says(gatewayapi.HTTPRoute+"/shop/left", "istio.io/gateway-controller")
}

// TestTrust: what nobody says anything of is taken back once what is said can be trusted.
func TestTrust(t *testing.T) {
	c := defaults()
	w := &writer{config: &c, work: newWork()}
	left := []byte(`{"metadata": {"name": "left", "namespace": "shop"}, "status": {"parents": [{"controllerName": "istio.io/gateway-controller"}]}}`)
	for _, trusted := range []bool{false, true} {
		if err := w.lookAtObject(gatewayapi.HTTPRoute, left, trusted); err != nil || w.work.waits() != trusted {
			t.Errorf("trusted %v: it waits: %v, %v", trusted, w.work.waits(), err)
		}
	}
}

// TestClasses: classes that are missing are made, with istiod's names, and again when they are
// deleted; not with another name of the controller.
func TestClasses(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true}`))
	s := newServer(t, h)
	h.Update(state.Services, nil)
	s.says(gatewayapi.GatewayClass+"/istio", "null")
	made := func(name string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.objects[gatewayapi.GatewayClass+"/"+name] != nil
	}
	wait.For(t, "classes are there", func() error {
		if !made("istio") || !made("istio-remote") {
			return errors.New("one is missing")
		}
		return nil
	})
	other := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "controller": "example.com/own"}`))
	lists := make(chan string, 100)
	other.OnStore(func(m *pb.Store) *pb.Stored {
		if m.Verb == pb.VerbCreate {
			t.Error("a class is made")
		}
		select {
		case lists <- m.Table:
		default:
		}
		return &pb.Stored{}
	})
	other.Update(state.Services, nil)
	<-lists
}

// TestClassesLater: classes that can't be made yet, for want of a definition of their kind, are
// made once there is one, though nothing else happens, before all statuses are read again.
func TestClassesLater(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "look": "24h"}`))
	s := newServer(t, h)
	refused, looks := 0, 0
	s.before = func(m *pb.Store) *pb.Stored {
		if m.Verb == pb.VerbList && m.Table == gatewayapi.GatewayClass {
			looks++
		}
		if m.Verb == pb.VerbCreate && refused < 2 {
			refused++
			return &pb.Stored{Code: sdk.StoreUnsupported, Error: "there is no definition"}
		}
		return nil
	}
	h.Update(state.Services, nil)
	wait.For(t, "classes are there", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range builtins {
			if s.objects[gatewayapi.GatewayClass+"/"+c.name] == nil {
				return errors.New("one is missing")
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused != 2 || looks > 1 {
		t.Errorf("refused %d times, and made after %d looks", refused, looks)
	}
}

// TestPace: no more statuses are written a second than the rate says, and what changes alone comes
// before what changed with many others.
func TestPace(t *testing.T) {
	w := newWork()
	changed := map[string]bool{}
	for n := range 2 * many {
		changed[gatewayapi.StatusKey(gatewayapi.HTTPRoute, fmt.Sprintf("shop/r%03d", n))] = true
	}
	w.queue(changed)
	w.queue(map[string]bool{web: true, gatewayapi.Gateway + "/shop/edge": true, gatewayapi.GatewayClass + "/istio": true})
	var got []string
	for range 4 {
		k, _ := w.next()
		got = append(got, k)
	}
	want := []string{gatewayapi.GatewayClass + "/istio", gatewayapi.Gateway + "/shop/edge", web, gatewayapi.StatusKey(gatewayapi.HTTPRoute, "shop/r000")}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReach: what is said of a Gateway follows its services and their endpoints.
func TestReach(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true, "classes": false, "rate": 1000}`))
	s := newServer(t, h)
	s.has(gatewayapi.Gateway, "{metadata: {name: edge, namespace: shop, generation: 1}}")
	k := gatewayapi.Gateway + "/shop/edge"
	const host = "edge-istio.shop.svc.cluster.local"
	j := &gatewayapi.Judged{
		Generation: 1, Status: []byte(`{"conditions": [{"type": "Accepted", "status": "True"}, {"type": "Programmed", "status": "False"}]}`),
		At: &gatewayapi.Reachable{Namespace: "shop", Services: []string{host}, Ports: []uint32{80}, Prefers: gateway.HostnameAddressType},
	}
	h.Update(gatewayapi.Statuses, []*sdk.Row{rowOf(t, gatewayapi.Gateway, "shop/edge", j)})
	s.says(k, "AddressNotUsable", `hostname \"`+host+`\" not found`)
	service := &pb.Service{Namespace: "shop", Host: host, Ports: []*pb.Port{{Number: 80, Name: "http"}}, AwaitsAddress: true}
	h.Update(state.Services, []*sdk.Row{sdk.ServiceRow(service)})
	s.says(k, "AddressNotAssigned", "no instances found for hostname")
	h.Update(state.Endpoints,
		[]*sdk.Row{sdk.EndpointRow(&pb.Endpoint{Namespace: "shop", Host: host, PortName: "http", ServicePort: 80, Port: 8080, Address: "10.0.0.1"})})
	s.says(k, "address pending for hostname")
	service.AwaitsAddress, service.ExternalAddresses = false, map[string]string{"Kubernetes": "192.0.2.1,lb.example"}
	h.Update(state.Services, []*sdk.Row{sdk.ServiceRow(service)})
	s.says(k, "assigned to service(s) "+host+":80", `{"type":"IPAddress","value":"192.0.2.1"}`, `{"type":"Hostname","value":"lb.example"}`)

	// A port for UDP is another one than that for TCP of its number.
	j.At.Datagrams = []uint32{80}
	h.Update(gatewayapi.Statuses, []*sdk.Row{rowOf(t, gatewayapi.Gateway, "shop/edge", j)})
	s.says(k, "AddressNotUsable", `port 80 for UDP not found for hostname \"`+host+`\"`)
	service.Ports = append(service.Ports, &pb.Port{Number: 80, Name: "dns", Protocol: "UDP"})
	h.Update(state.Services, []*sdk.Row{sdk.ServiceRow(service)})
	h.Update(state.Endpoints,
		[]*sdk.Row{sdk.EndpointRow(&pb.Endpoint{Namespace: "shop", Host: host, PortName: "dns", ServicePort: 80, Port: 5353, Address: "10.0.0.1"})})
	s.says(k, "Resource programmed, assigned to service(s) "+host+":80")
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"rate": 0}`: "rate", `{"rate": 1001}`: "rate", `{"look": "1ms"}`: "look", `{"lease": "1"}`: "lease",
		`{"namespace": ""}`: "namespace", `{"more": 1}`: "more",
	} {
		if got, reason := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: %s %s", config, got, reason)
		}
	}
	c := defaults()
	if c.leaseName() != "istio-gateway-status-leader-default" {
		t.Error(c.leaseName())
	}
	if c.Revision = "canary"; c.leaseName() != "istio-gateway-status-leader-canary" {
		t.Error(c.leaseName())
	}
}

// TestReadme: the README's example is one.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if !strings.Contains(blocks[0].Text, "builtin: controller/status") {
		t.Error(blocks)
	}
}

// TestRefused: an object that something was derived of that proxies refuse says so: a route to its
// parents, a Gateway at its listener, until it is over.
func TestRefused(t *testing.T) {
	row := func(key, parents string) *sdk.Row {
		return &sdk.Row{Key: key, Annotations: map[string]string{"internal.istio.io/parents": parents}}
	}
	var b state.Builder
	change, err := b.Apply(&pb.State{Whole: true, Revision: &pb.Revision{Epoch: 1, Number: 1}, Tables: []*pb.TableRows{
		{Table: "networking.istio.io/VirtualService", Upserts: []*sdk.Row{row("shop/v", "HTTPRoute/web.shop,HTTPRoute/a.b.shop"), row("shop/users", "")}},
		{Table: "networking.istio.io/Gateway", Upserts: []*sdk.Row{row("shop/g", "Gateway/edge/http.shop"), row("shop/odd", "Nothing/edge,x,Gateway/.,/,.")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var rows []sdk.Blame
	for _, n := range []state.Name{
		{Table: "networking.istio.io/VirtualService", Key: "shop/v"},
		{Table: "networking.istio.io/VirtualService", Key: "shop/users"},
		{Table: "networking.istio.io/Gateway", Key: "shop/g"},
		{Table: "networking.istio.io/Gateway", Key: "shop/odd"},
		{Table: "networking.istio.io/Gateway", Key: "shop/gone"},
	} {
		rows = append(rows, sdk.Blame{
			Table: n.Table, Key: n.Key, Type: "type.googleapis.com/x.RouteConfiguration", Resource: "http.80",
			Reason: "no good", Proxies: 1, Parts: "virtual host web",
		})
	}
	got := refusalsOf(change.State, rows)
	want := []string{gatewayapi.Gateway + "/shop/edge", gatewayapi.HTTPRoute + "/shop/a.b", web}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
	w := wants(t, 1, `parents: [{parentRef: {name: edge}, conditions: [{type: Accepted, status: "True"}]}]`)
	if err := w.refuse(got[web]); err != nil {
		t.Error(err)
	}
	text := "proxies refuse virtual host web of RouteConfiguration http.80, which was made from it (those that refuse " +
		"it have what they accepted before, or nothing): no good"
	is(t, w.status, `parents: [{parentRef: {name: edge}, conditions: [{type: Accepted, status: "True"}, {type: Refused, `+
		`status: "True", reason: ProxiesRefuse, lastTransitionTime: null, message: "`+text+`"}]}]`)
	w = wants(t, 1, `
conditions: [{type: Programmed, status: "True"}]
listeners: [{name: http, conditions: [{type: Programmed, status: "True"}]}, {name: tls, conditions: [{type: Programmed, status: "True"}]}]`)
	if err := w.refuse(got[gatewayapi.Gateway+"/shop/edge"]); err != nil {
		t.Error(err)
	}
	no := `{type: Programmed, status: "False", reason: Invalid, lastTransitionTime: null, message: "` + text + `"}`
	is(t, w.status, "conditions: ["+no+"]\nlisteners: [{name: http, conditions: ["+no+`]}, {name: tls, conditions: [{type: Programmed, status: "True"}]}]`)
}
