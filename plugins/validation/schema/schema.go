// Package schema checks resources by the schemas and CEL rules of Istio's custom resource
// definitions, as the Kubernetes API server does.
package schema

import (
	"context"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apicel "k8s.io/apiserver/pkg/apis/cel"

	kube "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Set is the schemas of all kinds. Each is compiled when it is needed first, and kept until Drop.
// Several goroutines may use it.
type Set struct {
	mu      sync.Mutex
	schemas map[name]func() (*compiled, error)
}

type name struct{ group, kind, version string }

// New returns the schemas.
func New() *Set { return &Set{schemas: make(map[name]func() (*compiled, error))} }

// Drop forgets what was compiled, for those who check seldom and want the memory: up to 14 MB for
// all kinds.
func (s *Set) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.schemas)
}

// compiled returns a schema, nil where there is none of this name.
func (s *Set) compiled(n name) (*compiled, error) {
	s.mu.Lock()
	get := s.schemas[n]
	if get == nil {
		get = sync.OnceValues(func() (*compiled, error) {
			text, err := read(n.group, n.kind, n.version)
			if err != nil || text == nil {
				return nil, err
			}
			return compile(text)
		})
		s.schemas[n] = get
	}
	s.mu.Unlock()
	return get()
}

// Check returns what the API server would say to a resource. Kinds without a schema are right.
func (s *Set) Check(r finding.Resource) []finding.Finding {
	c, err := s.compiled(name{r.Group, r.Kind, r.Version})
	if err != nil {
		return []finding.Finding{finding.Errorf(CodeSchema, "", "%v", err)}
	}
	if c == nil {
		return nil
	}
	return c.check(object(r))
}

// Defaulted returns a resource's spec as the API server keeps it: with the defaults of its schema.
// nil: there is no spec, or no schema of its kind.
func (s *Set) Defaulted(r finding.Resource) (spec any) {
	c, err := s.compiled(name{r.Group, r.Kind, r.Version})
	if err != nil || c == nil {
		return nil
	}
	o := object(r)
	if holdsNull(o) {
		defaulting.PruneNonNullableNullsWithoutDefaults(o, c.structural)
	}
	defaulting.Default(o, c.defaults)
	return o["spec"]
}

// check goes through the steps of the API server: unknown fields are dropped, then nulls where none
// may be, defaults set, then the schema, the keys of lists and the CEL rules are checked.
func (c *compiled) check(o map[string]any) []finding.Finding {
	if holdsNull(o) {
		defaulting.PruneNonNullableNullsWithoutDefaults(o, c.structural)
	}
	if c.surely(o) {
		return nil
	}
	dropped := pruning.PruneWithOptions(o, c.structural, true, kube.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	found := unknown(dropped)
	defaulting.Default(o, c.defaults)
	twice := listtype.ValidateListSetsAndMaps(nil, c.lists, o)
	w, err := c.whole()
	if err != nil {
		return []finding.Finding{finding.Errorf(CodeSchema, "", "%v", err)}
	}
	return append(found, w.check(c.structural, o, twice)...)
}

// holdsNull reports whether a value has a null in it.
func holdsNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, each := range v {
			if holdsNull(each) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsNull)
	}
	return false
}

// surely reports whether there is surely nothing to say about an object. It sets defaults.
func (c *compiled) surely(o map[string]any) bool {
	if c.quick == nil {
		return false
	}
	defaulting.Default(o, c.defaults)
	return len(listtype.ValidateListSetsAndMaps(nil, c.lists, o)) == 0 && c.quick.accepts(o)
}

// check returns what is wrong with an object, besides what lists have twice.
func (w *whole) check(s *kube.Structural, o map[string]any, twice field.ErrorList) []finding.Finding {
	wrong := append(validation.ValidateCustomResource(nil, o, w.openAPI), twice...)
	found := findings(wrong, CodeValue)
	if w.rules == nil || hasBlockingErr(wrong) {
		return found
	}
	broken, _ := w.rules.Validate(context.Background(), nil, s, o, nil, apicel.RuntimeCELCostBudget)
	return append(found, findings(broken, CodeRule)...)
}

// hasBlockingErr reports whether a value has a type or size for which no rule was written; the API
// server asks none then.
func hasBlockingErr(list field.ErrorList) bool {
	for _, err := range list {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
