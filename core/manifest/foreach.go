package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxInstances bounds what an entry may ask for.
	maxInstances = 1000
	// maxRowKey is how long a row's key may be that there is an instance for.
	maxRowKey = 63
)

var (
	rowKeyPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	rowFieldPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Runs reports whether the entry itself is to have a process: it is not disabled, and no pattern
// for others.
func (e *Entry) Runs() bool { return !e.Disabled && e.ForEach == nil }

// Row of a table that entries have instances for.
type Row struct {
	Key     string
	Payload []byte
}

// Misfit is a row that there is no instance for.
type Misfit struct{ Entry, Key, Reason string }

// Tables are those whose rows the set's entries have instances for, sorted.
func (s *Set) Tables() []string {
	var all []string
	for _, e := range s.Plugins {
		if e.ForEach != nil && !e.Disabled {
			all = append(all, e.ForEach.Table)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Expand returns the set with the instances of each entry that has any, behind it and in order of
// their keys, and the rows that can have none.
func (s *Set) Expand(rows func(table string) []Row) (*Set, []Misfit) {
	var all []*Entry
	var misfits []Misfit
	for _, e := range s.Plugins {
		all = append(all, e)
		if e.ForEach == nil || e.Disabled {
			continue
		}
		sorted := slices.SortedFunc(slices.Values(rows(e.ForEach.Table)), func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
		some := 0
		for _, r := range sorted {
			one, err := e.instance(r)
			if err == nil && some == int(e.ForEach.Max) {
				err = fmt.Errorf("there are %d instances already (forEach.max)", some)
			}
			if err != nil {
				misfits = append(misfits, Misfit{e.Name, r.Key, err.Error()})
				continue
			}
			some++
			all = append(all, one)
		}
	}
	return s.Of(all), misfits
}

// instance is the entry for one row.
func (e *Entry) instance(r Row) (*Entry, error) {
	if len(r.Key) > maxRowKey || !rowKeyPattern.MatchString(r.Key) {
		return nil, fmt.Errorf("its key can't be part of a name: it is not made of letters, digits, `-`, `_` and `.`, at most %d of them", maxRowKey)
	}
	var fields map[string]any
	if err := decodeNumbers(r.Payload, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("it is no JSON object")
	}
	one := *e
	one.ForEach, one.Of, one.Name = nil, e.Name, e.Name+"@"+r.Key
	if len(e.Config) == 0 {
		return &one, nil
	}
	var config any
	if err := decodeNumbers(e.Config, &config); err != nil {
		return nil, err
	}
	config, err := withRow(config, "config", fields)
	if err != nil {
		return nil, err
	}
	one.Config, err = json.Marshal(config)
	return &one, err
}

func decodeNumbers(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// withRow puts fields of a row in the place of references to them.
func withRow(value any, path string, fields map[string]any) (any, error) {
	var err error
	switch v := value.(type) {
	case []any:
		for i := range v {
			if v[i], err = withRow(v[i], path+"["+strconv.Itoa(i)+"]", fields); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if name, ok := reference(v); ok {
			field, known := fields[name]
			switch field.(type) {
			case string, bool, json.Number:
				return field, nil
			}
			if known {
				return nil, fmt.Errorf("its field %s is no string, number or boolean, which %s wants", name, path)
			}
			return nil, fmt.Errorf("it has no field %s, which %s wants", name, path)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) { // the same error for the same row
			if v[key], err = withRow(v[key], path+"."+key, fields); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// reference returns the field that a value stands for, if it is one that is written {row: FIELD}.
func reference(v map[string]any) (field string, ok bool) {
	field, ok = v["row"].(string)
	return field, ok && len(v) == 1
}

// forEach checks how an entry asks for instances, and the references of its config.
func (c *checker) forEach(e *Entry) {
	f := e.ForEach
	if f == nil {
		return
	}
	if f.Max > maxInstances {
		c.fail(f.Keys["max"], "`max` is at most %d", maxInstances)
	}
	if len(e.Config) == 0 {
		return
	}
	var config any
	if err := decodeNumbers(e.Config, &config); err == nil {
		c.references(e, config, "config")
	}
}

func (c *checker) references(e *Entry, value any, path string) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			c.references(e, v[i], path+"["+strconv.Itoa(i)+"]")
		}
	case map[string]any:
		if row, ok := v["row"]; ok {
			field, _ := row.(string)
			if len(v) > 1 || !rowFieldPattern.MatchString(field) {
				c.fail(e.Keys[path], "a field of a row is written {row: FIELD}, with nothing beside it; the name is made of letters, digits and `_`")
			}
			return
		}
		for key := range v {
			c.references(e, v[key], path+"."+key)
		}
	}
}

// fill sets defaults.
func (f *ForEach) fill() {
	if f == nil {
		return
	}
	f.Max, f.Wait = cmp.Or(f.Max, 100), cmp.Or(f.Wait, 30*time.Second)
}

// Sample is the entry with something in the place of references, and where they are: what is wrong
// there nobody knows without a row.
func (e *Entry) Sample() (*Entry, func(field string) bool) {
	at := map[string]bool{}
	for path := range e.Keys {
		if field, ok := strings.CutSuffix(path, ".row"); ok {
			at[strings.TrimPrefix(field, "config.")] = true
		}
	}
	var config any
	if e.ForEach == nil || len(at) == 0 || decodeNumbers(e.Config, &config) != nil {
		return e, func(string) bool { return false }
	}
	fields := map[string]any{}
	names(config, fields)
	filled, err := withRow(config, "config", fields)
	one := *e
	if err == nil {
		one.Config, err = json.Marshal(filled)
	}
	if err != nil {
		return e, func(string) bool { return true }
	}
	return &one, func(field string) bool {
		for path := range at {
			if field == path || strings.HasPrefix(path, field) {
				return true
			}
		}
		return false
	}
}

// names gives each field that is referred to some value.
func names(value any, fields map[string]any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			names(one, fields)
		}
	case map[string]any:
		if field, ok := reference(v); ok {
			fields[field] = "row"
			return
		}
		for _, one := range v {
			names(one, fields)
		}
	}
}
