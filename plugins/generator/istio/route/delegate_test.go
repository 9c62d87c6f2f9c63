package route

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"
)

// TestMatchesOfDelegates: what a delegate asks for must be within what the root does.
func TestMatchesOfDelegates(t *testing.T) {
	read := func(text string) *networking.HTTPMatchRequest {
		m := &networking.HTTPMatchRequest{}
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		root, delegate string
		want           bool
	}{
		{`{"uri": {"prefix": "/a"}}`, `{"uri": {"prefix": "/a/b"}}`, true},
		{`{"uri": {"prefix": "/a/b"}}`, `{"uri": {"prefix": "/a"}}`, false},
		{`{"uri": {"prefix": "/a"}}`, `{"uri": {"regex": "/a/.*"}}`, false},
		{`{"sourceNamespace": "x"}`, `{"sourceNamespace": "x"}`, true},
		{`{"sourceNamespace": "x"}`, `{"sourceNamespace": "y"}`, false},
		{`{"sourceNamespace": "x"}`, `{}`, false}, // it has to be said again
		{`{}`, `{"sourceNamespace": "x"}`, true},
		{`{"port": 80}`, `{}`, true},
		{`{"gateways": ["a", "b"]}`, `{"gateways": ["b"]}`, true},
		{`{"gateways": ["a"]}`, `{"gateways": ["b"]}`, false},
		{`{"sourceLabels": {"a": "1"}}`, `{"sourceLabels": {"b": "2"}}`, true},
		{`{"sourceLabels": {"a": "1"}}`, `{"sourceLabels": {"a": "2"}}`, false},
	} {
		if got := holds(read(c.root), read(c.delegate)); got != c.want {
			t.Errorf("%s within %s: %t", c.delegate, c.root, got)
		}
	}
}
