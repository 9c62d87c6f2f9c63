package istio

import (
	"slices"
	"testing"
)

func TestResolve(t *testing.T) {
	for host, want := range map[string]string{
		"reviews":     "reviews.default.svc.cluster.local",
		"reviews.com": "reviews.com",
		"*":           "*",
		"*.com":       "*.com",
		"":            "",
	} {
		if got := Resolve(host, "default", "cluster.local"); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*", "a.b", true},
		{"*", "*.b", true},
		{"*.b", "a.b", true},
		{"*.b", "*.a.b", true},
		{"*.a.b", "*.b", false},
		{"*.b", "b", false},
		{"a.b", "*.b", false},
		{"a.b", "a.b", true},
	} {
		if got := Covers(c.a, c.b); got != c.want {
			t.Errorf("%s covers %s: %v", c.a, c.b, got)
		}
	}
}

func TestMoreSpecific(t *testing.T) {
	order := []string{"b.example.com", "a.com", "*.b.example.com", "*.com", "*"}
	for i := range len(order) - 1 {
		if MoreSpecific(order[i], order[i+1]) >= 0 || MoreSpecific(order[i+1], order[i]) <= 0 {
			t.Errorf("%s comes before %s", order[i], order[i+1])
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		exportTo, defaults []string
		client             string
		want               Reach
		names              []string
	}{
		{nil, nil, "other", Everybody, []string{"*"}},
		{[]string{"*"}, nil, "other", Everybody, []string{"*"}},
		{[]string{"."}, nil, "other", Nobody, []string{"own"}},
		{[]string{"."}, nil, "own", Own, []string{"own"}},
		{[]string{"own"}, nil, "own", Own, []string{"own"}},
		{[]string{"~"}, nil, "own", Nobody, nil},
		{[]string{"~", "own", "other"}, nil, "other", Nobody, nil},
		{[]string{"~", "*"}, nil, "other", Everybody, []string{"*"}},
		{[]string{"other"}, nil, "other", Named, []string{"other"}},
		{[]string{"other", "."}, nil, "other", Named, []string{"other", "own"}},
		{[]string{"other"}, nil, "own", Nobody, []string{"other"}},
		{nil, []string{"."}, "other", Nobody, []string{"own"}},
		{nil, []string{"*", "."}, "other", Everybody, []string{"*"}},
		{nil, []string{"own", "."}, "own", Own, []string{"own"}},
		{nil, []string{"other"}, "other", Nobody, nil},
		{nil, []string{"~"}, "own", Nobody, nil},
		{[]string{"*"}, []string{"."}, "other", Everybody, []string{"*"}},
	} {
		if got := ReachOf(c.exportTo, c.defaults, "own", c.client); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if got := Export(c.exportTo, c.defaults, "own"); !slices.Equal(got, c.names) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSelects(t *testing.T) {
	labels := map[string]string{"a": "1", "b": ""}
	for _, c := range []struct {
		selector map[string]string
		want     bool
	}{
		{nil, false},
		{map[string]string{"a": "1"}, true},
		{map[string]string{"a": "1", "b": ""}, true},
		{map[string]string{"c": ""}, false},
		{map[string]string{"a": "2"}, false},
	} {
		if got := ServiceSelects(c.selector, labels); got != c.want {
			t.Errorf("a service with selector %v: %v", c.selector, got)
		}
		if got := Selects(c.selector, labels); got != (c.want || len(c.selector) == 0) {
			t.Errorf("a policy with selector %v: %v", c.selector, got)
		}
	}
}
