// Package strict reads a plugin's config: JSON into a struct, where each mistake is a *sdk.FieldError with the path of its field.
//
//	var c Config
//	if err := strict.Decode(config, &c); err != nil {
//		return nil, err // services[2].ports[0].number: expected a number from 0 to 65535, not "http"
//	}
//
// Keys must be the fields' names as their json tags have them, in the same case.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Decode reads config into the struct that into points to. Fields that the config doesn't name keep their values; so does everything
// where config is empty or null.
func Decode(config []byte, into any) error {
	if len(config) == 0 {
		return nil
	}
	return value("", config, reflect.ValueOf(into).Elem())
}

// Errorf returns an error at a field.
func Errorf(field, format string, args ...any) error {
	return &sdk.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// At returns the path of an element: list[i].
func At(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func value(path string, raw json.RawMessage, into reflect.Value) error {
	if string(raw) == "null" {
		return nil
	}
	switch into.Kind() {
	case reflect.Struct:
		return object(path, raw, into)
	case reflect.Slice:
		return list(path, raw, into)
	case reflect.Map:
		return dictionary(path, raw, into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return value(path, raw, into.Elem())
	}
	return leaf(path, raw, into)
}

func leaf(path string, raw json.RawMessage, into reflect.Value) error {
	err := json.Unmarshal(raw, into.Addr().Interface())
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return Errorf(path, "expected %s, not %s", describe(into.Type()), clip(raw))
	}
	if err != nil {
		return &sdk.FieldError{Field: path, Err: err}
	}
	return nil
}

func object(path string, raw json.RawMessage, into reflect.Value) error {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return Errorf(path, "expected an object, not %s", clip(raw))
	}
	fields := fieldsOf(into.Type())
	for _, key := range sorted(entries) {
		i, ok := fields[key]
		if !ok {
			return Errorf(join(path, key), "unknown%s", nearest.Suggest(key, sorted(fields)))
		}
		if err := value(join(path, key), entries[key], into.FieldByIndex(i)); err != nil {
			return err
		}
	}
	return nil
}

func list(path string, raw json.RawMessage, into reflect.Value) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return Errorf(path, "expected a list, not %s", clip(raw))
	}
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, e := range elements {
		if err := value(At(path, i), e, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func dictionary(path string, raw json.RawMessage, into reflect.Value) error {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return Errorf(path, "expected an object, not %s", clip(raw))
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range sorted(entries) {
		v := reflect.New(into.Type().Elem()).Elem()
		if err := value(join(path, key), entries[key], v); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), v)
	}
	return nil
}

// fieldsOf returns the places of a struct's fields, those of embedded structs among them, by the names in their json tags.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a number from 0 to %d", uint64(1)<<t.Bits()-1)
	}
	return "a number"
}

func clip(raw json.RawMessage) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}
