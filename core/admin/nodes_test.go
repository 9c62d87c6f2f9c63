package admin

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/xds"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// connected is a Source of streams.
type connected struct {
	twin
	streams []xds.StreamStatus
}

func (c connected) Streamed() []xds.StreamStatus { return c.streams }

// TestNodes: nodes are in order and each once, with what all of their streams subscribe to, and
// without what is secret.
func TestNodes(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": "shop", "API_TOKEN": "hush", "PROXY_CONFIG": map[string]any{"proxyMetadata": map[string]any{"DB_PASSWORD": "hush", "LEVEL": "3"}},
		"FILES": []any{"-----BEGIN PRIVATE KEY-----\nhush"},
	})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "b", Metadata: metadata, Extensions: []*corev3.Extension{{Name: "envoy.filters.http.router"}}}
	s := connected{streams: []xds.StreamStatus{
		{Connection: 1, Node: "b", Client: node, Types: []xds.TypeStatus{{Type: typeURL("cds"), Wildcard: true}, {Type: typeURL("lds")}}},
		{Connection: 2, Node: "b", Client: node, Types: []xds.TypeStatus{{Type: typeURL("eds")}}, Names: map[string][]string{typeURL("eds"): {"x", "y"}}},
		{
			Connection: 3, Node: "a", Client: &corev3.Node{Id: "a"}, Types: []xds.TypeStatus{{Type: typeURL("lds")}},
			Names: map[string][]string{typeURL("lds"): {"in"}},
		},
		{Connection: 4, Node: "tool", Client: &corev3.Node{Id: "tool"}},
	}}
	w := httptest.NewRecorder()
	start(t, s).HTTP().ServeHTTP(w, here("/debug/nodes"))
	got := strings.Join(strings.Fields(w.Body.String()), "")
	const want = `{"extensions":{"cfe98c7f5962":["envoy.filters.http.router"]},"proxies":[{"node":{"id":"a"},` +
		`"subscribes":{"type.googleapis.com/envoy.config.listener.v3.Listener":["in"]}},` +
		`{"node":{"id":"b","metadata":{"API_TOKEN":"[redacted]","FILES":["[redacted]"],"NAMESPACE":"shop",` +
		`"PROXY_CONFIG":{"proxyMetadata":{"DB_PASSWORD":"[redacted]","LEVEL":"3"}}}},"extensions":"cfe98c7f5962",` +
		`"subscribes":{"type.googleapis.com/envoy.config.cluster.v3.Cluster":["*"],` +
		`"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment":["x","y"]}}]}`
	if w.Code != 200 || got != want {
		t.Errorf("%d %s\nwant %s", w.Code, got, want)
	}
	if node.Metadata.Fields["API_TOKEN"].GetStringValue() != "hush" || len(node.Extensions) != 1 {
		t.Error("the stream's own node was changed")
	}
}

// TestShownMetadata: of a node's metadata the ledger has the fields that tools ask for, texts and
// maps of texts, without what is secret.
func TestShownMetadata(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": "shop", "CLUSTER": 3, "OTHER": "x", "LABELS": map[string]any{"app": "web", "API_TOKEN": "hush", "n": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := shownMetadata(xds.StreamStatus{Client: &corev3.Node{Metadata: metadata}}, []string{"NAMESPACE", "CLUSTER", "LABELS", "NONE"})
	want := map[string]any{"NAMESPACE": "shop", "LABELS": map[string]string{"app": "web", "API_TOKEN": "[redacted]"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
