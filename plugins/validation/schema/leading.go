package schema

import "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// leading returns what of a schema leads to places of a kind, which are there with all that is
// below them; nil where there are none. Code that goes through an object by it looks at those
// places alone.
func leading(s *schema.Structural, is func(*schema.Structural) bool) *schema.Structural {
	if s == nil || is(s) {
		return s
	}
	out := *s
	out.Items = leading(s.Items, is)
	out.Properties = map[string]schema.Structural{}
	for name, field := range s.Properties {
		if below := leading(&field, is); below != nil {
			out.Properties[name] = *below
		}
	}
	if a := s.AdditionalProperties; a != nil {
		out.AdditionalProperties = nil
		if below := leading(a.Structural, is); below != nil {
			out.AdditionalProperties = &schema.StructuralOrBool{Structural: below}
		}
	}
	if out.Items == nil && out.AdditionalProperties == nil && len(out.Properties) == 0 {
		return nil
	}
	return &out
}

// hasDefaults reports whether values right below have a default.
func hasDefaults(s *schema.Structural) bool {
	for _, field := range s.Properties {
		if field.Default.Object != nil {
			return true
		}
	}
	return s.Items != nil && s.Items.Default.Object != nil ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil && s.AdditionalProperties.Structural.Default.Object != nil
}

func isSetOrMap(s *schema.Structural) bool {
	return s.XListType != nil && *s.XListType != "atomic"
}
