package ingress

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// store keeps objects, by NAMESPACE/NAME, and tells of writes.
type store struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	refuse  int
	written chan string
}

func (s *store) answer(m *pb.Store) *pb.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Verb == pb.VerbGet {
		o, ok := s.objects[m.Namespace+"/"+m.Name]
		if !ok {
			return &pb.Stored{Code: sdk.StoreNotFound, Error: "it is not there"}
		}
		text, _ := json.Marshal(o)
		return &pb.Stored{Object: text}
	}
	if s.refuse > 0 {
		s.refuse--
		return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
	}
	var o map[string]any
	if err := json.Unmarshal(m.Object, &o); err != nil {
		return &pb.Stored{Code: sdk.StoreInvalid, Error: err.Error()}
	}
	meta := o["metadata"].(map[string]any)
	s.objects[fmt.Sprintf("%s/%s", meta["namespace"], meta["name"])] = o
	status, _ := json.Marshal(o["status"])
	s.written <- fmt.Sprintf("%s %s", meta["name"], status)
	return &pb.Stored{Object: m.Object}
}

// put is an Ingress as it is stored, whose status somebody has written.
func (s *store) put(name, manager, addresses string) {
	var o map[string]any
	text := fmt.Sprintf(
		`{"metadata": {"namespace": "a", "name": %q, "managedFields": [{"manager": %q, "subresource": "status", "fieldsV1": {"f:status": {"f:loadBalancer": {}}}}]},
		"status": {"other": 1, "loadBalancer": {"ingress": %s}}}`, name, manager, addresses,
	)
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects["a/"+name] = o
}

// row is the row of an Ingress of a class, with the addresses that its status has.
func row(name, class, addresses string) *sdk.Row {
	r := &sdk.Row{Key: "a/" + name, Payload: []byte(`{"ingressClassName": "` + class + `"}`), Annotations: map[string]string{}}
	if class == "" {
		r.Payload = []byte(`{}`)
	}
	if addresses != "" {
		r.Annotations[kinds.LoadBalancer] = addresses
	}
	return r
}

func class(name, controller string) *sdk.Row {
	return &sdk.Row{Key: name, Payload: []byte(`{"controller": "` + controller + `"}`)}
}

func gateway(addresses string) plugintest.Rows {
	return plugintest.Rows{Table: state.Services, Upserts: []*sdk.Row{sdk.ServiceRow(&pb.Service{
		Namespace: "istio-system", Host: "istio-ingressgateway.istio-system.svc.cluster.local",
		ExternalAddresses: map[string]string{"Kubernetes": addresses, "other": "192.0.2.9"},
	})}}
}

// TestController: Ingresses that are ours get the addresses of the gateway's service, also after a
// conflict, and lose them when their class leaves us; those of others are never touched, nor what
// others have written, nor is anything written twice.
func TestController(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true}`))
	s := &store{objects: map[string]map[string]any{}, refuse: 1, written: make(chan string, 10)}
	h.OnStore(s.answer)
	for _, name := range []string{"ours", "nginx", "taken", "again"} {
		s.put(name, "kubectl", "[]")
	}
	s.put("theirs", "nginx-controller", `[{"ip": "192.0.2.1"}]`)
	ingresses := func(rows ...*sdk.Row) plugintest.Rows { return plugintest.Rows{Table: ingress.Ingress, Upserts: rows} }
	expect := func(want ...string) {
		t.Helper()
		got := map[string]bool{}
		for range want {
			got[<-s.written] = true
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%q was not written, but %v", w, got)
			}
		}
	}
	h.Commit(
		plugintest.Rows{Table: ingress.Class, Upserts: []*sdk.Row{class("mesh", ingress.Controller), class("nginx", "k8s.io/ingress-nginx")}},
		ingresses(row("ours", "mesh", ""), row("nginx", "nginx", ""), row("theirs", "nginx", `[{"ip":"192.0.2.1"}]`)),
		gateway("lb.example,192.0.2.1,192.0.2.1"),
	)
	const both = `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"lb.example"}]},"other":1}`
	expect("ours " + both)
	if has := s.objects["a/theirs"]["status"]; !strings.Contains(fmt.Sprint(has), "192.0.2.1") {
		t.Errorf("another controller's status is %v", has)
	}
	// What was written is read back late, and nothing is written again until the service changes.
	h.Commit(ingresses(row("ours", "mesh", "")))
	const stored = `[{"ip":"192.0.2.1"},{"hostname":"lb.example"}]`
	h.Commit(ingresses(row("ours", "mesh", stored)))
	h.Commit(gateway("192.0.2.2"))
	expect(`ours {"loadBalancer":{"ingress":[{"ip":"192.0.2.2"}]},"other":1}`)
	// Its class goes to others: what an istiod wrote is taken back, what others wrote is not.
	s.put("ours", "pilot-discovery", `[{"ip":"192.0.2.2"}]`)
	s.put("taken", "nginx-controller", `[{"ip":"192.0.2.2"}]`)
	h.Commit(ingresses(row("ours", "nginx", `[{"ip":"192.0.2.2"}]`), row("taken", "nginx", `[{"ip":"192.0.2.2"}]`)))
	expect(`ours {"loadBalancer":{},"other":1}`)
	// A class that was never seen takes nothing away; one that went does.
	s.put("again", "coxswain", "[]")
	h.Commit(ingresses(row("ours", "nginx", ""), row("again", "gone", "")))
	h.Commit(plugintest.Rows{Table: ingress.Class, Upserts: []*sdk.Row{class("gone", ingress.Controller)}})
	expect(`again {"loadBalancer":{"ingress":[{"ip":"192.0.2.2"}]},"other":1}`)
	h.Commit(ingresses(row("again", "gone", `[{"ip":"192.0.2.2"}]`)), plugintest.Rows{Table: ingress.Class, Deletes: []string{"gone"}})
	expect(`again {"loadBalancer":{},"other":1}`)
	// Without the service there are no addresses.
	h.Commit(ingresses(row("ours", "mesh", ""), row("again", "nginx", "")))
	expect(`ours {"loadBalancer":{"ingress":[{"ip":"192.0.2.2"}]},"other":1}`)
	h.Commit(plugintest.Rows{Table: state.Services, Deletes: []string{sdk.ServiceKey("istio-system", "istio-ingressgateway.istio-system.svc.cluster.local")}})
	expect(`ours {"loadBalancer":{},"other":1}`)
	select {
	case more := <-s.written:
		t.Errorf("%s was written, too", more)
	default:
	}
}

func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if text := fmt.Sprint(blocks[0]); !strings.Contains(text, ingress.Ingress) {
		t.Error("the example doesn't grant the table")
	}
}
