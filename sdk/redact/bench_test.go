package redact_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// BenchmarkMessage is what one cluster with secrets costs to show.
func BenchmarkMessage(b *testing.B) {
	raw, err := proto.Marshal(full(b, planted))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		redact.Message("envoy.config.cluster.v3.Cluster", raw)
	}
}
