// Package validation checks configuration: each resource by its schema, then by what its fields
// mean.
package validation

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/coxswain-mesh/coxswain/plugins/validation/schema"
)

// Checker checks resources. It may be used by several goroutines.
type Checker struct {
	schemas *schema.Set
}

// New returns a checker.
func New() *Checker { return &Checker{schemas: schema.New()} }

// Check returns what there is to say about a resource: errors, which refuse it, and warnings. What
// the schema refuses is not looked at further: rules may rely on the schema.
func (c *Checker) Check(r finding.Resource) []finding.Finding {
	found := c.schemas.Check(r)
	if r.Partial || finding.Refuses(found) {
		return found
	}
	return append(found, rules.Check(r)...)
}

// Defaulted returns a resource's spec with the defaults that the API server sets; nil: there are
// none to be known.
func (c *Checker) Defaulted(r finding.Resource) (spec any) { return c.schemas.Defaulted(r) }

// Rest lets go of what can be made again when it is needed: memory, for those who check seldom.
func (c *Checker) Rest() { c.schemas.Drop() }

// Codes returns all codes, sorted by id.
func Codes() []finding.Code {
	all := slices.Concat(kinds.Codes(), schema.Codes(), rules.Codes())
	slices.SortFunc(all, func(a, b finding.Code) int { return strings.Compare(a.ID, b.ID) })
	return all
}
