package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	c := NewChanges[string]()
	if got := c.Take(); len(got) > 0 {
		t.Error(got)
	}
	c.Add("a", "b")
	c.Add("a")
	<-c.Some()
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true}, c.Take()); diff != "" {
		t.Error(diff)
	}
	select {
	case <-c.Some():
		t.Error("woken twice for what was taken once")
	default:
	}
	if got := c.Take(); len(got) > 0 {
		t.Error(got)
	}
}

func TestComplaints(t *testing.T) {
	var c Complaints
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
		if got := c.First(step.kind, errors.New(step.text), at.Add(step.after)); got != step.first {
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
