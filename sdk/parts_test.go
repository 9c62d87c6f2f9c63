package sdk

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// notes is a Publisher that notes updates, sorted, as TABLE +KEY -KEY.
type notes struct {
	Publisher
	said []string
	err  error
}

func (n *notes) Update(table string, upserts []*Row, deletes []string) error {
	if n.err != nil {
		return n.err
	}
	text := table
	keys := map[string]string{}
	for _, r := range upserts {
		keys[r.Key] = "+"
	}
	for _, k := range deletes {
		keys[k] = "-"
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		text += " " + keys[k] + k
	}
	n.said = append(n.said, text)
	return nil
}

// TestParts: what differs is published and nothing else, whatever was set in between, and again
// after an error.
func TestParts(t *testing.T) {
	out := &notes{}
	p := NewParts(out)
	service := func(host string) []*Service { return []*Service{{Host: host, Namespace: "n"}} }
	endpoints := func(host string, addresses ...string) (all []*Endpoint) {
		for _, a := range addresses {
			all = append(all, &Endpoint{Host: host, Namespace: "n", PortName: "p", Address: a, Port: 1})
		}
		return all
	}
	says := func(want ...string) {
		t.Helper()
		if err := p.Publish(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.said, want) {
			t.Errorf("got %q, want %q", out.said, want)
		}
		out.said = nil
	}
	p.Set("a", service("a"), endpoints("a", "1", "2"))
	p.Set("b", service("b"), endpoints("b", "1", "1"))
	out.err = fmt.Errorf("over")
	if p.Publish() == nil {
		t.Error("the error is lost")
	}
	out.err = nil
	says("services +n/a +n/b", "endpoints +n/a/p/1:1 +n/a/p/2:1 +n/b/p/1:1 +n/b/p/1:1#1")
	p.Set("a", service("a"), endpoints("a", "1", "2"))
	says()
	p.Set("a", service("a"), endpoints("a", "2", "3"))
	p.Set("b", nil, nil)
	says("services -n/b", "endpoints -n/a/p/1:1 +n/a/p/3:1 -n/b/p/1:1 -n/b/p/1:1#1")
	p.Set("a", nil, nil)
	p.Set("a", service("a"), endpoints("a", "2", "3"))
	says("services +n/a", "endpoints +n/a/p/2:1 +n/a/p/3:1")
}
