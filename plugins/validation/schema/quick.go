package schema

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiserver/pkg/cel/environment"
)

// quick says of most resources that are right that they are, at a fifth of what the API server's own code takes: that makes validators for each field of each
// object, and wraps each value that a rule looks at. It never says what is wrong: for that, and where it is not sure, that code is asked.
type quick struct {
	schema *jsonschema.Schema
	rules  *rules
}

// newQuick makes a schema ready. The error says why it can't be checked in this way.
func newQuick(text []byte, s *schema.Structural) (*quick, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	const name = "crd.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4) // from which the schemas of OpenAPI 3.0 come
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "int32", Validate: isInt32})
	c.RegisterFormat(&jsonschema.Format{Name: "byte", Validate: isBase64})
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	q := &quick{}
	if q.schema, err = c.Compile(name); err != nil {
		return nil, err
	}
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(cel.Variable("self", cel.DynType))
	if err != nil {
		return nil, err
	}
	q.rules, err = newRules(env, s, false)
	return q, err
}

func isInt32(v any) error {
	if n, ok := v.(int64); ok && int64(int32(n)) != n {
		return errors.New("too large")
	}
	return nil
}

func isBase64(v any) error {
	s, _ := v.(string)
	_, err := base64.StdEncoding.DecodeString(s)
	return err
}

// accepts says whether an object is surely right.
func (q *quick) accepts(o map[string]any) bool {
	return q.schema.Validate(o) == nil && q.rules.hold(o)
}

// rules are the CEL rules that stand at a place of a schema, and below it. nil: there are none.
type rules struct {
	own    []cel.Program
	fields map[string]*rules
	// items are those of a list, values those of a map.
	items, values *rules
}

var errNotQuick = errors.New("rules with types of their own")

// newRules returns the rules of a schema. ruled: some rule may look at its values from above.
func newRules(env *cel.Env, s *schema.Structural, ruled bool) (r *rules, err error) {
	if s == nil {
		return nil, nil
	}
	ruled = ruled || len(s.XValidations) > 0
	r = &rules{fields: map[string]*rules{}}
	for _, v := range s.XValidations {
		p, err := program(env, v.Rule)
		if err != nil {
			return nil, err
		}
		r.own = append(r.own, p)
	}
	if s.ValueValidation != nil {
		if slices.Contains([]string{"byte", "date", "date-time", "duration"}, s.ValueValidation.Format) && ruled {
			return nil, errNotQuick // rules see no string
		}
		for _, part := range s.ValueValidation.AllOf {
			if len(part.XValidations) > 0 || part.Items != nil || len(part.Properties) > 0 || part.AdditionalProperties != nil {
				return nil, errNotQuick // rules may stand there
			}
		}
	}
	if r.items, err = newRules(env, s.Items, ruled); err != nil {
		return nil, err
	}
	if s.AdditionalProperties != nil {
		if r.values, err = newRules(env, s.AdditionalProperties.Structural, ruled); err != nil {
			return nil, err
		}
	}
	for name, field := range s.Properties {
		below, err := newRules(env, &field, ruled)
		if err != nil {
			return nil, err
		}
		if below != nil {
			r.fields[name] = below
		}
	}
	if len(r.own)+len(r.fields) == 0 && r.items == nil && r.values == nil {
		return nil, nil
	}
	return r, nil
}

// program compiles a rule for values as they are in the text. The API server has other names for fields that are reserved words, and the object as it was
// before.
func program(env *cel.Env, rule string) (cel.Program, error) {
	if strings.Contains(rule, "__") || strings.Contains(rule, "oldSelf") {
		return nil, errNotQuick
	}
	ast, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(ast)
}

// hold says whether all rules surely hold for a value.
func (r *rules) hold(value any) bool {
	if r == nil {
		return true
	}
	for _, p := range r.own {
		if out, _, err := p.Eval(self{value}); err != nil || out != types.True {
			return false
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			below := r.values
			if f, ok := r.fields[name]; ok {
				below = f
			}
			if !below.hold(v) {
				return false
			}
		}
	case []any:
		for _, v := range value {
			if !r.items.hold(v) {
				return false
			}
		}
	case nil:
		return false
	}
	return true
}

// self is what a rule sees.
type self struct{ value any }

// ResolveName implements cel.Activation.
func (s self) ResolveName(name string) (any, bool) { return s.value, name == "self" }

// Parent implements cel.Activation.
func (s self) Parent() cel.Activation { return nil }
