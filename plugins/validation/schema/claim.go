package schema

import (
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// claim is a condition on which fields an object has: so many of its parts must hold, and the
// fields that it names be there.
type claim struct {
	fields      []string
	least, most int
	parts       []claim
}

// claim adds what a schema says of the fields of objects by allOf, anyOf, oneOf and not. It is
// exact, as what is denied must be.
func (q *quick) claim(v *schema.ValueValidation) (err error) {
	q.claims, err = claims(v)
	if len(q.claims) > 0 && q.kind != "object" {
		return errNotQuick
	}
	return err
}

func claims(v *schema.ValueValidation) (all []claim, err error) {
	for _, group := range []struct {
		parts       []schema.NestedValueValidation
		least, most int
	}{{v.AllOf, len(v.AllOf), len(v.AllOf)}, {v.AnyOf, 1, len(v.AnyOf)}, {v.OneOf, 1, 1}} {
		if len(group.parts) == 0 {
			continue
		}
		c := claim{least: group.least, most: group.most}
		for _, each := range group.parts {
			part, err := newClaim(&each)
			if err != nil {
				return nil, err
			}
			c.parts = append(c.parts, part)
		}
		all = append(all, c)
	}
	if v.Not == nil {
		return all, nil
	}
	denied, err := newClaim(v.Not)
	return append(all, claim{parts: []claim{denied}}), err
}

// newClaim returns the condition that stands in a place of its own.
func newClaim(n *schema.NestedValueValidation) (claim, error) {
	parts, err := claims(&n.ValueValidation)
	if err != nil {
		return claim{}, err
	}
	rest := *n
	rest.Required, rest.AllOf, rest.AnyOf, rest.OneOf, rest.Not = nil, nil, nil, nil, nil
	if !reflect.ValueOf(rest).IsZero() {
		return claim{}, errNotQuick
	}
	return claim{fields: n.Required, least: len(parts), most: len(parts), parts: parts}, nil
}

func (c claim) holds(o map[string]any) bool {
	for _, name := range c.fields {
		if _, ok := o[name]; !ok {
			return false
		}
	}
	held := 0
	for _, p := range c.parts {
		if p.holds(o) {
			held++
		}
	}
	return c.least <= held && held <= c.most
}
