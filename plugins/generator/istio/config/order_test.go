package config

import "testing"

// Names are compared before namespaces, and neither is joined with the other: '-' goes before '.'.
func TestBefore(t *testing.T) {
	web, canary := Meta{Name: "web", Namespace: "z"}, Meta{Name: "web-canary", Namespace: "a"}
	if web.Before(canary) >= 0 || canary.Before(web) <= 0 || web.Before(Meta{Name: "web", Namespace: "y"}) <= 0 {
		t.Error("they are not in order of name, then namespace")
	}
	if web.Before(Meta{Name: "a", Namespace: "a", Created: 1}) >= 0 {
		t.Error("the older one is not first")
	}
}

func TestTies(t *testing.T) {
	a := Meta{Name: "a", Namespace: "a", Undated: true}
	for _, c := range []struct {
		b    Meta
		want bool
	}{
		{Meta{Name: "b", Namespace: "b", Undated: true}, true},
		{Meta{Name: "b", Namespace: "a", Undated: true}, false},
		{Meta{Name: "b", Namespace: "b", Undated: true, Created: 1}, false},
	} {
		if a.Ties(c.b) != c.want || c.b.Ties(a) != c.want {
			t.Errorf("%v", c.b)
		}
	}
	if (Meta{Name: "a", Namespace: "a"}).Ties(Meta{Name: "b", Namespace: "b"}) {
		t.Error("an API server's objects of one second are in no order")
	}
}
