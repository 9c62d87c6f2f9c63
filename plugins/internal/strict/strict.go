// Package strict says where a config, or another document, is wrong: each mistake is a
// *sdk.FieldError with the path of its field.
package strict

import (
	"errors"
	"fmt"

	"github.com/coxswain-mesh/coxswain/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Decode reads JSON into the struct that into points to, as the SDK reads configs: see
// sdk.WithConfig. Fields that the text doesn't name keep their values; so does everything where it
// is empty or null.
func Decode(text []byte, into any) error {
	err := strict.Decode(text, into)
	var wrong *strict.Error
	if errors.As(err, &wrong) {
		return &sdk.FieldError{Field: wrong.Field, Err: errors.New(wrong.Reason)}
	}
	return err
}

// Errorf returns an error at a field.
func Errorf(field, format string, args ...any) error {
	return &sdk.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// At returns the path of an element: list[i].
func At(list string, i int) string { return strict.At(list, i) }

// Parse reads a config and checks it, as sdk.WithConfig does for a plugin.
func Parse[C any](text []byte, defaults C) (C, error) {
	if err := Decode(text, &defaults); err != nil {
		return defaults, err
	}
	if c, ok := any(&defaults).(sdk.Checker); ok {
		if err := c.Check(); err != nil {
			return defaults, err
		}
	}
	return defaults, nil
}
