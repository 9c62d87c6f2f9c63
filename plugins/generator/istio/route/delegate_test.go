package route

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
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

// TestDelegatesInherit: what a delegate's route doesn't say is the root's, and what it says stays.
func TestDelegatesInherit(t *testing.T) {
	for field, values := range map[string][2]string{
		"rewrite": {`{"uri": "/a"}`, `{"uri": "/b"}`}, "directResponse": {`{"status": 1}`, `{"status": 2}`}, "timeout": {`"1s"`, `"2s"`},
		"retries": {`{"attempts": 1}`, `{"attempts": 2}`}, "fault": {`{"delay": {"fixedDelay": "1s"}}`, `{"delay": {"fixedDelay": "2s"}}`},
		"mirror": {`{"host": "a"}`, `{"host": "b"}`}, "mirrorPercent": {`1`, `2`}, "mirrorPercentage": {`{"value": 1}`, `{"value": 2}`},
		"corsPolicy": {`{"maxAge": "1s"}`, `{"maxAge": "2s"}`}, "headers": {`{"request": {"remove": ["a"]}}`, `{"request": {"remove": ["b"]}}`},
		"mirrors": {`[{"destination": {"host": "a"}}]`, `[{"destination": {"host": "b"}}]`},
	} {
		read := func(value string) *networking.HTTPRoute {
			r := &networking.HTTPRoute{}
			if err := protojson.Unmarshal([]byte(`{"`+field+`": `+value+`}`), r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		if got, want := inherit(read(values[0]), &networking.HTTPRoute{}), read(values[0]); !proto.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", field, got, want)
		}
		if got, want := inherit(read(values[0]), read(values[1])), read(values[1]); !proto.Equal(got, want) {
			t.Errorf("%s, said by both: got %v, want %v", field, got, want)
		}
	}
}
