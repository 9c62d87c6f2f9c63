package patch

import (
	"bytes"
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
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
	bodies, err := p.decode(listenerType, m.Resources)
	if err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	for name, tt := range map[string]struct{ resources, want string }{
		"no JSON":           {`{"name": 1`, "which does not decode"},
		"unknown field":     {`{"nam": "a"}`, "which does not decode"},
		"another name":      {`{"name": "b"}`, `it is named "a" but says of itself that it is "b"`},
		"a rule of Envoy's": {`{"name": "a", "listenerFiltersTimeout": "1s", "filterChains": [{"filters": [{"name": ""}]}]}`, "which Envoy would refuse"},
	} {
		if _, err := p.decode(listenerType, []*pb.Resource{{Name: "a", Bytes: []byte(tt.resources)}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
