package sdk_test

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// TestExplainedByReads: of a generator that says nothing itself, what its Generate has read is
// known, and what it says of one resource counts for that.
func TestExplainedByReads(t *testing.T) {
	generate := func(s *state.State, _, _ string, names []string) ([]sdk.Resource, error) {
		var out []sdk.Resource
		for _, name := range []string{"one", "own", "whole"} {
			r := sdk.Resource{Name: name, Body: []byte(name)}
			switch {
			case names != nil && names[0] != name:
				continue
			case name == "one":
				s.Row("services", "a")
				s.Row("services", "not there")
			case name == "own":
				s.Row("services", "b")
				r.From = []state.Name{{Table: "services", Key: "b"}}
			case name == "whole":
				for range s.Table("endpoints").All() {
					break
				}
			}
			out = append(out, r)
		}
		return out, nil
	}
	h := plugintest.Start(t, sdk.GeneratorPlugin{
		Name: "g", Version: "1", Reads: []string{"services", "endpoints"}, Types: []sdk.Type{{Url: clusters}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
	}, nil)
	h.Commit(plugintest.Rows{Table: "services", Upserts: []*sdk.Row{{Key: "a"}, {Key: "b"}}},
		plugintest.Rows{Table: "endpoints", Upserts: []*sdk.Row{{Key: "e"}, {Key: "f"}}})
	p := &sdk.Proxy{Types: []string{clusters}}
	view := h.Attach(p)[clusters]
	if got := len(h.Resources(p.Connection, clusters)); got != 3 {
		t.Fatalf("%d resources were made", got)
	}
	explained := func(name string) string {
		t.Helper()
		b := h.Explain(clusters, view, name)
		return fmt.Sprint(keys(b.Rows), keys(b.Missing), b.Error)
	}
	if got := explained("one"); got != "[e f a b] [not there]" {
		t.Errorf("a resource of which nothing is said was made from %s", got)
	}
	if got := explained("own"); got != "[b] [not there]" {
		t.Errorf("a resource of which its author says it was made from %s", got)
	}
	h.Update("endpoints", []*sdk.Row{{Key: "g"}}, "e")
	if got := explained("whole"); got != "[f g a b] [not there]" {
		t.Errorf("after an edit it was made from %s", got)
	}
}

func keys(names []*pb.RowName) (keys []string) {
	for _, n := range names {
		keys = append(keys, n.Key)
	}
	return keys
}

// divided is a generator that knows of each virtual host from which service it was made.
type divided struct{ sdk.GeneratorFuncs }

func (divided) Explain(string, uint64, string) (rows, missing []state.Name, err error) {
	return []state.Name{{Table: "services", Key: "a"}, {Table: "services", Key: "b"}}, nil, nil
}

func (divided) ExplainPiece(_ string, _ uint64, _ string, of sdk.Piece) ([]state.Name, bool) {
	return []state.Name{{Table: "services", Key: fmt.Sprint(of)}}, of.Name != "unknown"
}

// TestExplainedByPiece: who knows whose a piece is says so of that alone; else all of the resource
// counts, and the answer says which of both it is.
func TestExplainedByPiece(t *testing.T) {
	h := plugintest.Start(t, sdk.GeneratorPlugin{
		Name: "g", Version: "1", Reads: []string{"services"}, Types: []sdk.Type{{Url: clusters}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return divided{}, nil }),
	}, nil)
	h.Commit(plugintest.Rows{Table: "services", Upserts: []*sdk.Row{{Key: "a"}, {Key: "b"}}})
	for _, c := range []struct {
		of   *pb.Explain
		want string
	}{
		{&pb.Explain{}, "[a b] false"},
		{&pb.Explain{Piece: "x"}, "[{x 0}] true"},
		{&pb.Explain{FilterChain: 2, Piece: "f"}, "[{f 2}] true"},
		{&pb.Explain{FilterChain: 3}, "[{ 3}] true"},
		{&pb.Explain{Piece: "unknown"}, "[a b] false"},
	} {
		b := h.ExplainPiece(c.of)
		if got := fmt.Sprint(keys(b.Rows), b.Piece); got != c.want {
			t.Errorf("%v: made from %s, want %s", c.of, got, c.want)
		}
	}
}
