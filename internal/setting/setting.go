// Package setting reads what the fields of a struct declare of settings, so that a setting is said
// once: its flag, its environment variable, its check and its documentation are made from that.
//
// A field declares a setting by these tags. Values are durations (10s), whole numbers, which may
// end in Ki, Mi or Gi, other numbers, and true or false.
//
//	koanf    its name; a struct with setting:",squash" has the settings of its fields
//	default  what it is unless somebody says otherwise; none: the zero value
//	least    the least that it may be
//	above    what it has to be more than
//	most     the most that it may be
//	zero     what 0 means, such as: no bound; nothing is less than that
//	help     what it is for
package setting

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field is a setting that a field declares.
type Field struct {
	Name, Help string
	// Value is the field's: a bool, an int, an int64, a float64 or a time.Duration.
	Value reflect.Value
	tag   reflect.StructTag
}

// Fields returns the settings that a struct declares, in the order of its fields. It panics if one
// is declared in a way that can't be.
func Fields(of any) []Field { return fields(reflect.Indirect(reflect.ValueOf(of))) }

func fields(of reflect.Value) (all []Field) {
	for i := range of.NumField() {
		tag := of.Type().Field(i).Tag
		name, options, _ := strings.Cut(tag.Get("setting"), ",")
		switch {
		case options == "squash":
			all = append(all, fields(of.Field(i))...)
		case name != "" && name != "-":
			f := Field{Name: name, Help: tag.Get("help"), Value: of.Field(i), tag: tag}
			if zero := tag.Get("zero"); zero != "" {
				f.Help += "; 0: " + zero
			}
			all = append(all, f)
		}
	}
	return all
}

// Default returns a T whose settings are what they are unless somebody says otherwise.
func Default[T any]() T {
	var t T
	for _, f := range Fields(&t) {
		if v, ok := f.said("default"); ok {
			f.Value.Set(v)
		}
	}
	return t
}

// Check returns what is outside of the bounds that its settings declare, in the words of the
// settings.
func Check(of any) error {
	var errs []error
	for _, f := range Fields(of) {
		errs = append(errs, f.check())
	}
	return errors.Join(errs...)
}

func (f Field) check() error {
	zero := f.tag.Get("zero")
	if zero != "" && compare(f.Value, reflect.Zero(f.Value.Type())) < 0 {
		return fmt.Errorf("%s: %v is negative; 0 means %s", f.Name, f.Value, zero)
	}
	least, bounded := f.said("least")
	most, limited := f.said("most")
	above, over := f.said("above")
	switch {
	case bounded && limited && (compare(f.Value, least) < 0 || compare(f.Value, most) > 0):
		return fmt.Errorf("%s: %v must be from %v to %v", f.Name, f.Value, least, most)
	case bounded && compare(f.Value, least) < 0:
		return fmt.Errorf("%s: %v is less than %v", f.Name, f.Value, least)
	case limited && compare(f.Value, most) > 0:
		return fmt.Errorf("%s: %v is more than %v", f.Name, f.Value, most)
	case over && compare(f.Value, above) <= 0:
		return fmt.Errorf("%s: %v must be more than %v", f.Name, f.Value, above)
	}
	return nil
}

// said returns what a tag says, as a value of the field's type; false: it says nothing.
func (f Field) said(key string) (reflect.Value, bool) {
	text, ok := f.tag.Lookup(key)
	if !ok {
		return reflect.Value{}, false
	}
	v, err := parse(text, f.Value.Type())
	if err != nil {
		panic(fmt.Sprintf("setting %s: its tag %s: %v", f.Name, key, err))
	}
	return v, true
}

func parse(text string, as reflect.Type) (reflect.Value, error) {
	v := reflect.New(as).Elem()
	switch {
	case as == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return v, err
	case v.CanInt():
		shift := 0
		for i, suffix := range []string{"Ki", "Mi", "Gi"} {
			if rest, ok := strings.CutSuffix(text, suffix); ok {
				text, shift = rest, 10*(i+1)
			}
		}
		n, err := strconv.ParseInt(text, 10, 32)
		v.SetInt(n << shift)
		return v, err
	case v.CanFloat():
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return v, err
	case as.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return v, err
	}
	return v, fmt.Errorf("settings of type %s declare nothing in tags", as)
}

// compare is negative where a is less than b, zero where they are equal, and positive otherwise.
func compare(a, b reflect.Value) int {
	switch {
	case a.CanInt() && a.Int() < b.Int(), a.CanFloat() && a.Float() < b.Float():
		return -1
	case a.CanInt() && a.Int() > b.Int(), a.CanFloat() && a.Float() > b.Float():
		return 1
	}
	return 0
}
