package istio

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
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
		{nil, []string{"other"}, "other", Named, []string{"other"}},
		{nil, []string{"other"}, "own", Nobody, []string{"other"}},
		{nil, []string{".", "other"}, "other", Named, []string{"other", "own"}},
		{nil, []string{".", "other"}, "own", Own, []string{"other", "own"}},
		{nil, []string{".", "other"}, "third", Nobody, []string{"other", "own"}},
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

func TestIdentity(t *testing.T) {
	const whole = "spiffe://corp/ns/shop/sa/web"
	id, ok := ParseIdentity(whole)
	if want := (Identity{"corp", "shop", "web"}); !ok || id != want || id.String() != whole {
		t.Errorf("%+v, %v", id, ok)
	}
	for _, s := range []string{
		"", "corp/ns/shop/sa/web", "spiffe://corp/ns/shop/sa/", "spiffe:///ns/shop/sa/web",
		"spiffe://corp/ns//sa/web", "spiffe://corp/ns/shop/sa/web/x", "spiffe://corp/sa/web/ns/shop",
	} {
		if id, ok := ParseIdentity(s); ok {
			t.Errorf("%q is taken for %+v", s, id)
		}
	}
	for account, want := range map[string]string{"": "", "web": whole, "spiffe://other/x": "spiffe://other/x"} {
		if got := AccountIdentity(account, "shop", "corp"); got != want {
			t.Errorf("account %q: %q, want %q", account, got, want)
		}
	}
	names := []string{"spiffe://corp/ns/a/sa/b", "other"}
	if got, want := Aliases(names, []string{"old"}), []string{"other", "spiffe://corp/ns/a/sa/b", "spiffe://old/ns/a/sa/b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNodeID(t *testing.T) {
	id, ok := ParseNodeID("sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local")
	if want := (NodeID{"sidecar", "10.0.0.1", "web-1", "shop", "shop.svc.cluster.local"}); !ok || id != want || id.Short() != "web-1.shop" {
		t.Errorf("%+v, %v", id, ok)
	}
	if id, ok := ParseNodeID("router~::1~gw~x"); !ok || id.Short() != "gw" || id.Namespace != "" {
		t.Errorf("%+v, %v", id, ok)
	}
	for _, s := range []string{"", "web", "a~b~c", "a~b~c~d~e"} {
		if id, ok := ParseNodeID(s); ok {
			t.Errorf("%q is taken for %+v", s, id)
		}
	}
}

func TestTrustDomains(t *testing.T) {
	if got := TrustDomains("", []string{"old", "old", LocalTrustDomain}); !slices.Equal(got, []string{LocalTrustDomain, "old"}) {
		t.Error(got)
	}
	domains := []string{"corp", "old"}
	for name, want := range map[string][]string{
		"corp/ns/a/sa/b": {"corp/ns/a/sa/b", "old/ns/a/sa/b"}, "cluster.local/ns/a/sa/b": {"corp/ns/a/sa/b", "old/ns/a/sa/b"},
		"old/ns/a/sa/b": {"corp/ns/a/sa/b", "old/ns/a/sa/b"}, "other/ns/a/sa/b": {"other/ns/a/sa/b"}, "*/ns/a/sa/b": {"*/ns/a/sa/b"}, "corp/*": {"corp/*"},
	} {
		if got := InTrustDomains([]string{name}, domains); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := SameTrustDomains([]string{"old", "other"}, domains); !slices.Equal(got, []string{"corp", "old", "other"}) {
		t.Error(got)
	}
}

// TestVersionFaults: what expressions for proxies' versions cost is bounded, for an EnvoyFilter as
// a whole. Here an expression is as large as the number at its end says.
func TestVersionFaults(t *testing.T) {
	size := func(text string) (int, error) {
		_, number, _ := strings.Cut(text, "=")
		return strconv.Atoi(number)
	}
	for name, c := range map[string]struct {
		texts []string
		want  []int
	}{
		"what people write":         {[]string{"a=30", "", "b=20", "a=30"}, nil},
		"no expression":             {[]string{"a=1", "(", "["}, []int{1, 2}},
		"a long text":               {[]string{"a=1", strings.Repeat("1", 1024) + "=1", "b=1"}, []int{1}},
		"a large program":           {[]string{"a=2049", "b=1"}, []int{0}},
		"many together":             {[]string{"a=900", "b=900", "a=900", "c=900", "d=1"}, []int{3}},
		"the largest that is taken": {[]string{"a=1024", "b=1024"}, nil},
	} {
		f := &networking.EnvoyFilter{}
		for _, text := range c.texts {
			f.ConfigPatches = append(f.ConfigPatches, &networking.EnvoyFilter_EnvoyConfigObjectPatch{
				Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{Proxy: &networking.EnvoyFilter_ProxyMatch{ProxyVersion: text}},
			})
		}
		var got []int
		for _, fault := range VersionFaults(f, size) {
			got = append(got, fault.Patch)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: faults at %v, want %v", name, got, c.want)
		}
	}
}
