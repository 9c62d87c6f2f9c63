package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Change is an operation of a JSON patch (RFC 6902): add, remove or replace.
type Change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MarshalJSON writes a value that is null, false or empty, too, unless something is removed.
func (c Change) MarshalJSON() ([]byte, error) {
	if c.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{c.Op, c.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{c.Op, c.Path, c.Value})
}

// Changes returns what makes one value of another, as operations that leave alone what is the same:
// what this program doesn't know of an object stays as it is. In lists of things with names, those
// with the same name are the same thing.
func Changes(from, to any) ([]Change, error) {
	a, err := tree(from)
	if err != nil {
		return nil, err
	}
	b, err := tree(to)
	if err != nil {
		return nil, err
	}
	return differ("", a, b), nil
}

// tree is a value as JSON has it.
func tree(v any) (out any, err error) {
	if pod, ok := v.(*corev1.Pod); ok {
		return runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// escape and unescape are how a path has keys with slashes.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// step is a path with one more key.
func step(path, key string) string { return path + "/" + escape.Replace(key) }

func differ(path string, a, b any) []Change {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	am, aMap := a.(map[string]any)
	bm, bMap := b.(map[string]any)
	al, aList := a.([]any)
	bl, bList := b.([]any)
	switch {
	case aMap && bMap:
		return differMaps(path, am, bm)
	case aList && bList:
		if changes, ok := differLists(path, al, bl); ok {
			return changes
		}
	}
	return []Change{{Op: "replace", Path: path, Value: b}}
}

func differMaps(path string, a, b map[string]any) (all []Change) {
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[k]; !ok {
			all = append(all, Change{Op: "remove", Path: step(path, k)})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if was, ok := a[k]; ok {
			all = append(all, differ(step(path, k), was, b[k])...)
			continue
		}
		all = append(all, Change{Op: "add", Path: step(path, k), Value: b[k]})
	}
	return all
}

// names returns the names of a list's things; not ok if one has none, or two have the same.
func names(list []any) (all []string, ok bool) {
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, is := m["name"].(string)
		if !is || slices.Contains(all, name) {
			return nil, false
		}
		all = append(all, name)
	}
	return all, true
}

// differLists follows things by their names; not ok if they have none, or have other places among
// each other.
func differLists(path string, a, b []any) (all []Change, ok bool) {
	was, ok := names(a)
	is, also := names(b)
	if !ok || !also {
		return nil, false
	}
	at := 0
	for i := 0; i < len(is); {
		here := path + "/" + strconv.Itoa(i)
		switch {
		case at < len(was) && was[at] == is[i]:
			all = append(all, differ(here, a[at], b[i])...)
			at, i = at+1, i+1
		case !slices.Contains(was, is[i]):
			all = append(all, Change{Op: "add", Path: here, Value: b[i]})
			i++
		case at < len(was) && !slices.Contains(is, was[at]):
			all = append(all, Change{Op: "remove", Path: here})
			at++
		default:
			return nil, false
		}
	}
	for ; at < len(was); at++ {
		if slices.Contains(is, was[at]) {
			return nil, false
		}
		all = append(all, Change{Op: "remove", Path: path + "/" + strconv.Itoa(len(is))})
	}
	return all, true
}

// Apply returns what changes make of a value as JSON has it. The value may be changed.
func Apply(to any, changes []Change) (any, error) {
	for _, c := range changes {
		keys := strings.Split(c.Path, "/")[1:]
		for i := range keys {
			keys[i] = unescape.Replace(keys[i])
		}
		var err error
		if to, err = apply(to, keys, c); err != nil {
			return nil, fmt.Errorf("%s %s: %w", c.Op, c.Path, err)
		}
	}
	return to, nil
}

func apply(to any, keys []string, c Change) (any, error) {
	if len(keys) == 0 {
		return c.Value, nil
	}
	switch of := to.(type) {
	case map[string]any:
		return of, applyMap(of, keys, c)
	case []any:
		i, err := strconv.Atoi(keys[0])
		switch {
		case err != nil || i < 0 || i > len(of) || i == len(of) && (len(keys) > 1 || c.Op != "add"):
			return nil, fmt.Errorf("there is no element %s of %d", keys[0], len(of))
		case len(keys) == 1 && c.Op == "add":
			return slices.Insert(of, i, c.Value), nil
		case len(keys) == 1 && c.Op == "remove":
			return slices.Delete(of, i, i+1), nil
		}
		of[i], err = apply(of[i], keys[1:], c)
		return of, err
	}
	return nil, fmt.Errorf("%q is asked of something that has no parts", keys[0])
}

func applyMap(of map[string]any, keys []string, c Change) (err error) {
	if len(keys) == 1 && c.Op == "remove" {
		delete(of, keys[0])
		return nil
	}
	if _, ok := of[keys[0]]; !ok && len(keys) > 1 {
		of[keys[0]] = map[string]any{}
	}
	of[keys[0]], err = apply(of[keys[0]], keys[1:], c)
	return err
}
