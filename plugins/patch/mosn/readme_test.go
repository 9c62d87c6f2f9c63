package mosn

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// TestReadme patches the README's listener.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 3)
	var given, wanted, got listenerv3.Listener
	for i, m := range []*listenerv3.Listener{&given, &wanted} {
		if err := protojson.Unmarshal([]byte(blocks[i+1].Text), m); err != nil {
			t.Fatal(err)
		}
	}
	body, err := proto.Marshal(&given)
	if err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), nil)
	patched := h.Patch(listenerType, nil, sdk.Resource{Name: given.Name, Body: body})
	if len(patched.Resources) != 1 || proto.Unmarshal(patched.Resources[0].Bytes, &got) != nil || !proto.Equal(&got, &wanted) {
		t.Errorf("%v, want %v", &got, &wanted)
	}
}
