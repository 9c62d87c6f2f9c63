package ingress

import (
	"cmp"
	"slices"
	"strings"

	istio "istio.io/api/networking/v1alpha3"
	networking "k8s.io/api/networking/v1"
)

// Path is what a path of an Ingress matches; the zero value: all paths.
type Path struct {
	Text string
	// Exact: nothing else than Text; otherwise what begins with it, up to a slash.
	Exact bool
}

// PathOf returns what a path of an Ingress matches. With pathType: ImplementationSpecific it is
// Istio's own meaning: what ends with a star is a prefix, all else is exact.
func PathOf(of *networking.HTTPIngressPath) Path {
	switch t := of.PathType; {
	case t != nil && *t == networking.PathTypeExact:
		return Path{of.Path, true}
	case t != nil && *t == networking.PathTypePrefix:
		return Path{of.Path, false}
	case slices.Contains([]string{"", "*", "/*", ".*"}, of.Path):
		return Path{}
	}
	for _, end := range []string{".*", "/*"} {
		if before, ok := strings.CutSuffix(of.Path, end); ok {
			return Path{before, false}
		}
	}
	return Path{of.Path, true}
}

// Match is the match of a VirtualService for it; nil: it needs none.
func (p Path) Match() []*istio.HTTPMatchRequest {
	switch {
	case p == Path{}:
		return nil
	case p.Exact:
		return []*istio.HTTPMatchRequest{{Uri: &istio.StringMatch{MatchType: &istio.StringMatch_Exact{Exact: p.Text}}}}
	}
	return []*istio.HTTPMatchRequest{{Uri: &istio.StringMatch{MatchType: &istio.StringMatch_Prefix{Prefix: p.Text}}}}
}

// String is the path, for people.
func (p Path) String() string { return cmp.Or(p.Text, "all paths") }

// meaning is the same for paths that match the same.
func (p Path) meaning() Path {
	if !p.Exact {
		p.Text = strings.TrimSuffix(p.Text, "/")
	}
	return p
}

// Route is a path of a rule of an Ingress.
type Route struct {
	Created         int64
	Namespace, Name string
	// Rule and At are the places of the rule, and of the path in it.
	Rule, At int
	Path     Path
}

// Older orders rules as those of one host are joined: by the age of their Ingresses, then by name.
func (r Route) Older(o Route) int {
	return cmp.Or(cmp.Compare(r.Created, o.Created), strings.Compare(r.Name, o.Name), strings.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Rule, o.Rule))
}

// Before orders routes of one host as they are tried: the longest path first, of equally long ones
// those that are exact, then those of the older Ingress. Source: Kubernetes, Ingress, "Multiple
// matches".
func (r Route) Before(o Route) int {
	if c := cmp.Compare(len(o.Path.Text), len(r.Path.Text)); c != 0 {
		return c
	}
	if r.Path.Exact != o.Path.Exact {
		if r.Path.Exact {
			return -1
		}
		return 1
	}
	return cmp.Or(r.Older(o), cmp.Compare(r.At, o.At))
}

// Lost is a route that is never taken, since another one that matches the same is tried first.
type Lost struct{ Route, To Route }

// Rivals returns those of a host's routes, which stand in their order.
func Rivals(routes []Route) (out []Lost) {
	first := map[Path]Route{}
	for _, r := range routes {
		m := r.Path.meaning()
		if to, taken := first[m]; taken {
			out = append(out, Lost{r, to})
		} else {
			first[m] = r
		}
	}
	return out
}

// Why says to whom the route is lost.
func (l Lost) Why() string {
	switch whose := l.To.Namespace + "/" + l.To.Name; {
	case whose == l.Route.Namespace+"/"+l.Route.Name:
		return "another path of this Ingress goes before it"
	case l.To.Path == l.Route.Path:
		return "Ingress " + whose + ", which is older, has it"
	default:
		return "Ingress " + whose + " has " + l.To.Path.String() + ", which is tried first"
	}
}
