package patch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// TestPatchInJSON: a patch that asked for JSON gets it, always the same text, and its answers
// become protobuf.
func TestPatchInJSON(t *testing.T) {
	p := &Patcher{ready: &pb.Ready{Json: true}}
	body, err := proto.Marshal(&listenerv3.Listener{Name: "a", StatPrefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	m := &pb.Patch{Type: listenerType, Resources: []*pb.Resource{{Name: "a", Bytes: body}}}
	if err := p.encode(m); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Resources[0].Bytes); got != `{"name":"a","statPrefix":"x"}` {
		t.Errorf("the patch gets %s", got)
	}
	m.Resources[0].Bytes = bytes.ReplaceAll(m.Resources[0].Bytes, []byte(`"x"`), []byte(`"y"`))
	never := func(string) *view.Body { return nil }
	bodies, _, err := p.decode(listenerType, m.Resources, never)
	if err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	for name, tt := range map[string]struct{ resources, want string }{
		"no JSON":           {`{"name": 1`, "which does not decode"},
		"unknown field":     {`{"nam": "a"}`, "which does not decode"},
		"another name":      {`{"name": "b"}`, `it is named "a" but says of itself that it is "b"`},
		"a rule of Envoy's": {`{"name": "a", "listenerFiltersTimeout": "1s", "filterChains": [{"filters": [{"name": ""}]}]}`, "which Envoy would refuse"},
	} {
		_, _, err := p.decode(listenerType, []*pb.Resource{{Name: "a", Bytes: []byte(tt.resources)}}, never)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpoiltPieces: of an answer that Envoy would refuse the pieces that are at fault are as they
// were when the patch last got them right, or closed, and the rest is as it says.
func TestSpoiltPieces(t *testing.T) {
	const routes, listener = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", listenerType
	host := func(name, prefix, status string) string {
		return fmt.Sprintf(`{"name": "%[1]s", "domains": ["%[1]s.example"], "routes": [{"match": {"prefix": "%s"}, "directResponse": {"status": %s}}]}`,
			name, prefix, status)
	}
	hosts := func(all ...string) string { return `{"name": "r", "virtualHosts": [` + strings.Join(all, ",") + `]}` }
	chain := func(name, filter string) string {
		return fmt.Sprintf(`{"name": "%[1]s", "filterChainMatch": {"serverNames": ["%[1]s.example"]}, "filters": [{"name": "%s"}]}`, name, filter)
	}
	chains := func(all ...string) string { return `{"name": "r", "filterChains": [` + strings.Join(all, ",") + `]}` }
	closed := func(name string) string { return fmt.Sprintf(`{"name": "%[1]s", "domains": ["%[1]s.example"]}`, name) }
	shut := func(name string) string {
		return fmt.Sprintf(`{"name": "%[1]s", "filterChainMatch": {"serverNames": ["%[1]s.example"]}}`, name)
	}
	for _, tt := range []struct {
		name, typeURL       string
		before, says, makes string
		spoilt              string
	}{
		{"none", routes, "", hosts(host("a", "/", "200")), hosts(host("a", "/", "200")), ""},
		{
			"a host that was good", routes, hosts(host("a", "/old", "200"), host("b", "/old", "200")),
			hosts(host("a", "/", "7"), host("b", "/", "200")), hosts(host("a", "/old", "200"), host("b", "/", "200")), "virtual host a",
		},
		{"a host that never was", routes, "", hosts(host("a", "/", "7"), host("b", "/", "200")), hosts(closed("a"), host("b", "/", "200")), "virtual host a"},
		{
			"all hosts", routes, hosts(host("a", "/old", "200")), hosts(host("a", "/", "7"), host("b", "/", "7")),
			hosts(host("a", "/old", "200"), closed("b")), "virtual host a, virtual host b",
		},
		{
			"a chain that was good", listener, chains(chain("a", "old"), chain("b", "old")), chains(chain("a", ""), chain("b", "new")),
			chains(chain("a", "old"), chain("b", "new")), "filter chain a",
		},
		{"a chain that never was", listener, "", chains(chain("a", ""), chain("b", "new")), chains(shut("a"), chain("b", "new")), "filter chain a"},
		{"beside the hosts", routes, "", `{"name": "r", "virtualHosts": [` + host("a", "/", "200") + `], "responseHeadersToAdd": [{}]}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &Patcher{ready: &pb.Ready{Json: true}}
			body := func(text string) *view.Body {
				if text == "" {
					return nil
				}
				m, err := newMessage(tt.typeURL)
				if err == nil {
					err = protojson.Unmarshal([]byte(text), m)
				}
				bytes, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				return view.NewBody(tt.typeURL, "r", bytes, 0)
			}
			got, spoilt, err := p.decode(tt.typeURL, []*pb.Resource{{Name: "r", Bytes: []byte(tt.says)}}, func(string) *view.Body { return body(tt.before) })
			if tt.makes == "" {
				if err == nil || !strings.Contains(err.Error(), "which Envoy would refuse") {
					t.Fatalf("it is taken: %v, %v", got, err)
				}
				return
			}
			if err != nil || len(got) != 1 || !bytes.Equal(got[0].Value(), body(tt.makes).Value()) {
				t.Fatalf("it becomes %v (%v), not %s", got, err, tt.makes)
			}
			if tt.spoilt == "" && spoilt != "" || !strings.HasPrefix(spoilt, tt.spoilt) {
				t.Errorf("it says %q, not %q", spoilt, tt.spoilt)
			}
		})
	}
}
