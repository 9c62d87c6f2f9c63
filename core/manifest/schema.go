package manifest

import (
	"bytes"
	_ "embed"
	"errors"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest/internal/strict"
)

//go:embed plugins.schema.json
var schema []byte

// Schema returns the JSON Schema of plugins.yaml, without what built-in plugins take.
func Schema() []byte { return bytes.Clone(schema) }

// ConfigIn says that the entry's config stands in a file of its own: what is wrong with it is named
// by its place there.
func (e *Entry) ConfigIn(file string, text []byte) {
	keys := strict.Where(file, text, "config")
	for key, at := range e.Keys {
		if key != "config" && !strings.HasPrefix(key, "config.") && !strings.HasPrefix(key, "config[") {
			keys[key] = at
		}
	}
	e.Keys = keys
}

// Place is one in a file: its name, line and column.
type Place = strict.Place

// Mistake is one in a plugins.yaml, at its place.
type Mistake = strict.Error

// Mistakes returns those that Parse found.
func Mistakes(err error) []Mistake {
	var all strict.Errors
	errors.As(err, &all)
	return all
}
