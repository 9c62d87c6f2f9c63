// Package mutated edits objects of Kubernetes at random, as people write them, and as templates
// spoil them: nulls, empty maps and lists, values of other types, unknown fields, words that YAML
// 1.1 takes for booleans, numbers in quotes, the numbers of an enum's values.
package mutated

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"sigs.k8s.io/yaml"
)

// enum is how values of enums are named.
var enum = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// word stands for one that is a boolean to YAML 1.1, until the text is written.
var word = regexp.MustCompile(`WORD(\w+)WORD`)

// Text is an object's YAML after one or two random edits below its spec; the object stays as it is.
func Text(t testing.TB, rnd *rand.Rand, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	for range 1 + rnd.IntN(6)/5 {
		places := below(nil, o["spec"], func(v any) { o["spec"] = v }, func() { delete(o, "spec") })
		change(rnd, places[rnd.IntN(len(places))])
	}
	text, err = yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return word.ReplaceAll(text, []byte("$1"))
}

// place is a value of an object that can be set, or taken away.
type place struct {
	value any
	set   func(any)
	drop  func()
}

func below(all []place, value any, set func(any), drop func()) []place {
	all = append(all, place{value, set, drop})
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = below(all, v[k], func(n any) { v[k] = n }, func() { delete(v, k) })
		}
	case []any:
		for i := range v {
			all = below(all, v[i], func(n any) { v[i] = n }, func() { v[i] = nil })
		}
	}
	return all
}

func change(rnd *rand.Rand, p place) {
	values := []any{nil, nil, nil, map[string]any{}, []any{}, "", "text", true, -1.0, 70000.0, 1.5, "WORDyesWORD", "WORDoffWORD", "WORDyWORD"}
	switch n := rnd.IntN(len(values) + 5); {
	case n < len(values):
		p.set(values[n])
	case n == len(values):
		p.drop()
	case n == len(values)+1:
		p.set(recast(rnd, p.value))
	default:
		if m, ok := p.value.(map[string]any); ok {
			m["zzUnheardOf"] = values[rnd.IntN(len(values))]
		} else if list, ok := p.value.([]any); ok {
			p.set(append(list, values[rnd.IntN(len(values))]))
		} else {
			p.set(nil)
		}
	}
}

// recast is a value as protobuf's JSON mapping takes it, too: a number in quotes, an enum's value
// by its number. What is neither stays.
func recast(rnd *rand.Rand, value any) any {
	switch v := value.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		if enum.MatchString(v) {
			return float64(rnd.IntN(4))
		}
	}
	return value
}
