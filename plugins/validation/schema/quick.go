package schema

import (
	"encoding/base64"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiserver/pkg/cel/environment"
)

// quick says of most values that are right that they are, at a tenth of what the API server's own
// code takes: that copies a schema for each field that it looks for, makes validators for each
// field of each object, and wraps each value that a rule looks at. It never says what is wrong: for
// that, and where it is not sure, that code is asked.
type quick struct {
	// kind is the type of values as schemas name it, or intOrString.
	kind string
	// fields are those of an object, values what its other fields hold; without values none is
	// right unless the object is free.
	fields   map[string]*quick
	values   *quick
	free     bool
	required []string
	// items are a list's.
	items *quick
	// least and most are how many characters, items or fields there may be; minimum and maximum
	// bound numbers.
	least, most      int64
	minimum, maximum float64
	enum             []string
	numbers          []float64 // the same of numbers
	pattern          *regexp.Regexp
	format           string
	claims           []claim
	rules            []cel.Program
}

const intOrString = "integer or string"

var errNotQuick = errors.New("the schema has what only the API server's code checks")

// newQuick makes a schema ready. The error says why it can't be checked in this way.
func newQuick(s *schema.Structural) (*quick, error) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(cel.Variable("self", cel.DynType))
	if err != nil {
		return nil, err
	}
	q, err := (&quickener{env}).value(s, false)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"apiVersion", "kind"} {
		q.fields[name] = &quick{kind: "string", most: math.MaxInt64}
	}
	q.fields["metadata"] = &quick{kind: "object", free: true, most: math.MaxInt64}
	return q, nil
}

// quickener makes quicks, with rules of an environment.
type quickener struct{ env *cel.Env }

// value returns what checks values of a schema. ruled: some rule may look at them from above.
func (k *quickener) value(s *schema.Structural, ruled bool) (*quick, error) {
	q := &quick{kind: s.Type, free: s.XPreserveUnknownFields, most: math.MaxInt64, minimum: math.Inf(-1), maximum: math.Inf(1)}
	if s.XIntOrString {
		q.kind = intOrString
	}
	ruled = ruled || len(s.XValidations) > 0
	for _, v := range s.XValidations {
		p, err := program(k.env, v.Rule)
		if err != nil {
			return nil, err
		}
		q.rules = append(q.rules, p)
	}
	if s.XEmbeddedResource || q.kind == "" {
		return nil, errNotQuick
	}
	if err := q.bound(s.ValueValidation, ruled); err != nil {
		return nil, err
	}
	return q, k.below(q, s, ruled)
}

// below adds what checks the values in a value.
func (k *quickener) below(q *quick, s *schema.Structural, ruled bool) (err error) {
	q.fields = make(map[string]*quick, len(s.Properties))
	for name, field := range s.Properties {
		if q.fields[name], err = k.value(&field, ruled); err != nil {
			return err
		}
	}
	if a := s.AdditionalProperties; a != nil {
		if a.Structural == nil {
			return errNotQuick
		}
		if q.values, err = k.value(a.Structural, ruled); err != nil {
			return err
		}
	}
	if q.kind == "array" {
		if s.Items == nil {
			return errNotQuick
		}
		q.items, err = k.value(s.Items, ruled)
	}
	return err
}

// formats are those that are checked. Those of the second kind are strings to whoever writes them,
// but not to rules.
var (
	formats = []string{"", "int32", "int64", "double"}
	typed   = []string{"byte", "date-time"}
)

// bound adds what a value must hold besides its type.
func (q *quick) bound(v *schema.ValueValidation, ruled bool) error {
	if v == nil {
		return nil
	}
	known := slices.Contains(formats, v.Format) || slices.Contains(typed, v.Format) && !ruled
	if !known || v.ExclusiveMaximum || v.ExclusiveMinimum || v.MultipleOf != nil || v.UniqueItems {
		return errNotQuick
	}
	q.format, q.required = v.Format, v.Required
	set(&q.minimum, v.Minimum)
	set(&q.maximum, v.Maximum)
	low, high := sizes(q.kind, v)
	set(&q.least, low)
	set(&q.most, high)
	for _, e := range v.Enum {
		switch v := e.Object.(type) {
		case string:
			q.enum = append(q.enum, v)
		case int64:
			q.numbers = append(q.numbers, float64(v))
		case float64:
			q.numbers = append(q.numbers, v)
		default:
			return errNotQuick
		}
	}
	if v.Pattern != "" {
		var err error
		if q.pattern, err = regexp.Compile(v.Pattern); err != nil {
			return err
		}
	}
	if q.kind == intOrString {
		return nil // says once more which types there are
	}
	return q.claim(v)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// sizes returns the bounds that go for values of a type.
func sizes(kind string, v *schema.ValueValidation) (least, most *int64) {
	switch kind {
	case "object":
		return v.MinProperties, v.MaxProperties
	case "array":
		return v.MinItems, v.MaxItems
	}
	return v.MinLength, v.MaxLength
}

// hasReserved and reserved are fields that are called as a reserved word of CEL.
var hasReserved, reserved = regexp.MustCompile(`has\((\w+)\.__namespace__\)`), regexp.MustCompile(`(\w)\.__namespace__`)

// program compiles a rule for values as they are in the text. The API server has other names for
// fields that are reserved words, and the object as it was before.
func program(env *cel.Env, rule string) (cel.Program, error) {
	rule = reserved.ReplaceAllString(hasReserved.ReplaceAllString(rule, `('namespace' in $1)`), `$1['namespace']`)
	if strings.Contains(rule, "__") || strings.Contains(rule, "oldSelf") {
		return nil, errNotQuick
	}
	ast, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(ast)
}

// accepts reports whether a value, as JSON is read, is surely right, and has no unknown fields.
func (q *quick) accepts(value any) bool {
	ok := false
	switch v := value.(type) {
	case string:
		ok = q.text(v)
	case bool:
		ok = q.kind == "boolean"
	case int64:
		ok = q.number(float64(v), true)
	case float64:
		ok = q.number(v, false)
	case map[string]any:
		ok = q.object(v)
	case []any:
		ok = q.list(v)
	}
	if !ok || len(q.rules) == 0 {
		return ok
	}
	return !slices.ContainsFunc(q.rules, func(p cel.Program) bool {
		out, _, err := p.Eval(self{value})
		return err != nil || out != types.True
	})
}

func (q *quick) text(v string) bool {
	if q.kind != "string" && q.kind != intOrString || !q.listed(slices.Contains(q.enum, v)) ||
		q.pattern != nil && !q.pattern.MatchString(v) {
		return false
	}
	var err error
	switch q.format {
	case "byte":
		_, err = base64.StdEncoding.DecodeString(v)
	case "date-time":
		_, err = time.Parse(time.RFC3339, v)
	}
	return err == nil && q.fits(utf8.RuneCountInString(v))
}

// listed reports whether a value may be that is among those that are listed, or not.
func (q *quick) listed(is bool) bool { return is || len(q.enum)+len(q.numbers) == 0 }

// fits reports whether there may be so many characters, items or fields.
func (q *quick) fits(n int) bool { return q.least <= int64(n) && int64(n) <= q.most }

func (q *quick) number(v float64, whole bool) bool {
	if q.kind != "number" && !(whole && (q.kind == "integer" || q.kind == intOrString)) ||
		!q.listed(slices.Contains(q.numbers, v)) {
		return false
	}
	if q.format == "int32" && (v < math.MinInt32 || v > math.MaxInt32) {
		return false
	}
	return q.minimum <= v && v <= q.maximum
}

func (q *quick) list(v []any) bool {
	return q.kind == "array" && q.fits(len(v)) && !slices.ContainsFunc(v, func(item any) bool { return !q.items.accepts(item) })
}

func (q *quick) object(v map[string]any) bool {
	if q.kind != "object" || !q.fits(len(v)) {
		return false
	}
	for name, field := range v {
		below := q.fields[name]
		if below == nil {
			below = q.values
		}
		if below == nil && !q.free || below != nil && !below.accepts(field) {
			return false
		}
	}
	for _, name := range q.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for _, c := range q.claims {
		if !c.holds(v) {
			return false
		}
	}
	return true
}

// self is what a rule sees.
type self struct{ value any }

// ResolveName implements cel.Activation.
func (s self) ResolveName(name string) (any, bool) { return s.value, name == "self" }

// Parent implements cel.Activation.
func (s self) Parent() cel.Activation { return nil }
