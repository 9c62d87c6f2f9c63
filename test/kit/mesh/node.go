package mesh

import (
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3" // stand in bootstraps
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// node returns the node that a bootstrap names.
func node(t testing.TB, bootstrap []byte) *corev3.Node {
	t.Helper()
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(bootstrap, &b); err != nil {
		t.Fatal(err)
	}
	return b.Node
}
