package view

import (
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Text that is no UTF-8 is refused wherever it stands, as every reader of protobuf would refuse it;
// bytes may be anything.
func TestTextIsUTF8(t *testing.T) {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	bad, good := []byte("a\xff"), []byte("ä")
	const sourceType = "type.googleapis.com/envoy.config.core.v3.DataSource"
	any := func(url string, value []byte) []byte {
		return append(field(1, []byte("t")), field(3, append(field(1, []byte(url)), field(2, value)...))...) // TransportSocket.typed_config
	}
	for name, c := range map[string]struct {
		url   string
		value []byte
		want  string
	}{
		"text":             {clusterType, field(1, good), ""},
		"a field":          {clusterType, field(1, bad), "envoy.config.cluster.v3.Cluster.name is not UTF-8"},
		"inside of an Any": {clusterType, field(24, any(sourceType, field(1, bad))), "envoy.config.core.v3.DataSource.filename is not UTF-8"},
		"bytes in an Any":  {clusterType, field(24, any(sourceType, field(2, bad))), ""},
		"one of a list": {
			"type.googleapis.com/envoy.config.route.v3.VirtualHost", append(field(2, good), field(2, bad)...),
			"VirtualHost.domains is not UTF-8",
		},
		"text where no one is": {clusterType, field(9999, bad), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.url, c.value)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if err := proto.Unmarshal(field(1, bad), &core.DataSource{}); err == nil {
		t.Error("protobuf reads it")
	}
}
