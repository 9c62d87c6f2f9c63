package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func TestChanges(t *testing.T) {
	c := NewChanges[string]()
	if got := c.Drain(); len(got) > 0 {
		t.Error(got)
	}
	c.Add("a", "b")
	c.Add("a")
	<-c.Some()
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true}, c.Drain()); diff != "" {
		t.Error(diff)
	}
	select {
	case <-c.Some():
		t.Error("woken twice for what was taken once")
	default:
	}
	if got := c.Drain(); len(got) > 0 {
		t.Error(got)
	}
}

func TestLogLimiter(t *testing.T) {
	var c LogLimiter
	at := time.Unix(0, 0)
	for _, step := range []struct {
		kind, text string
		after      time.Duration
		first      bool
	}{
		{"pods", "away", 0, true},
		{"pods", "away", time.Second, false},
		{"nodes", "away", time.Second, true},
		{"pods", "forbidden", 2 * time.Second, true},
		{"pods", "forbidden", 61 * time.Second, false},
		{"pods", "forbidden", 62 * time.Second, true},
	} {
		if got := c.Allow(step.kind, errors.New(step.text), at.Add(step.after)); got != step.first {
			t.Errorf("%+v: %v", step, got)
		}
	}
}

func TestAccess(t *testing.T) {
	a := DefaultAccess()
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	for _, a := range []Access{{QPS: 0, Burst: 1}, {QPS: 1, Burst: 0}} {
		if a.Check() == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}

// TestSelection: labels match one of the selectors, all of a selector's words; without selectors
// all do.
func TestSelection(t *testing.T) {
	of := func(selectors ...*api.LabelSelector) (Selection, error) {
		payload, err := kinds.Encode(&api.MeshConfig{DiscoverySelectors: selectors})
		if err != nil {
			t.Fatal(err)
		}
		var b state.Builder
		change, err := b.Apply(&pb.State{Whole: true, Tables: []*pb.TableRows{{Table: state.Mesh, Upserts: []*pb.Row{{Key: state.Mesh, Payload: payload}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return SelectionOf(change.State)
	}
	a := &api.LabelSelector{MatchLabels: map[string]string{"mesh": "yes", "team": "a"}}
	not := &api.LabelSelector{
		MatchExpressions: []*api.LabelSelectorRequirement{{Key: "env", Operator: "In", Values: []string{"x", "y"}}, {Key: "off", Operator: "DoesNotExist"}},
	}
	for _, c := range []struct {
		selectors []*api.LabelSelector
		labels    map[string]string
		has       bool
	}{
		{nil, nil, true},
		{[]*api.LabelSelector{a}, map[string]string{"mesh": "yes"}, false},
		{[]*api.LabelSelector{a}, map[string]string{"mesh": "yes", "team": "a", "x": "y"}, true},
		{[]*api.LabelSelector{a, not}, map[string]string{"env": "y"}, true},
		{[]*api.LabelSelector{not}, map[string]string{"env": "y", "off": ""}, false},
		{[]*api.LabelSelector{{}}, nil, true},
	} {
		s, err := of(c.selectors...)
		if err != nil || s.Has(c.labels) != c.has || s.All() != (c.selectors == nil) {
			t.Errorf("%+v: %v, %v", c, s, err)
		}
	}
	one, _ := of(a)
	again, _ := of(a)
	other, _ := of(not)
	if !one.Same(again) || one.Same(other) || one.Same(Selection{}) {
		t.Error("which selections are the same")
	}
	if _, err := of(&api.LabelSelector{MatchExpressions: []*api.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}); err == nil {
		t.Error("an operator that nobody knows is taken")
	}
	if s, err := SelectionOf(&state.State{}); err != nil || !s.All() {
		t.Error(s, err)
	}
}
