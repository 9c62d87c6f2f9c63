package instances

import (
	"path"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Names are globs (path.Match) of the names that count, as configs have them: those that are
// included, all where there are none, but for those that are excluded.
type Names struct {
	Include []string `json:"include" doc:"Names or globs that count; all where there are none."`
	Exclude []string `json:"exclude" doc:"Names or globs that don't."`
}

// Check returns what is wrong with the globs, as a *sdk.FieldError below a field; example is one
// that is right.
func (n *Names) Check(field, example string) error {
	if err := CheckGlobs(field+".include", n.Include, example); err != nil {
		return err
	}
	return CheckGlobs(field+".exclude", n.Exclude, example)
}

// Select reports whether a name counts.
func (n *Names) Select(name string) bool {
	return (len(n.Include) == 0 || Match(n.Include, name)) && !Match(n.Exclude, name)
}

// CheckGlobs returns what is wrong with a field's globs, as a *sdk.FieldError; example is one that
// is right.
func CheckGlobs(field string, globs []string, example string) error {
	for i, g := range globs {
		if _, err := path.Match(g, ""); err != nil || g == "" {
			return strict.Errorf(strict.At(field, i), "%q is no name, and no glob such as %s", g, example)
		}
	}
	return nil
}

// Match reports whether a name matches one of the globs.
func Match(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { ok, _ := path.Match(glob, name); return ok })
}

// CheckProtocol brings a field's protocol into the form of rows (hosts.Protocol). Empty is fine:
// each proxy finds out.
func CheckProtocol(field string, p *string) error {
	if *p != "" && hosts.Protocol(*p) == "" {
		return strict.Errorf(field,
			"%q is none of HTTP, HTTP2, HTTPS, GRPC, GRPC-WEB, TCP, TLS, MONGO, REDIS, MYSQL, UDP; empty: it is found out by each proxy",
			*p)
	}
	*p = hosts.Protocol(*p)
	return nil
}

// CheckNamespace returns what is wrong with meshNamespace, the namespace that services are in.
func CheckNamespace(n string) error {
	if n == "" || strings.Contains(n, "/") {
		return strict.Errorf("meshNamespace", "%q is no namespace", n)
	}
	return nil
}
