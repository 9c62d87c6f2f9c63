package sdk

import (
	"errors"

	"github.com/coxswain-mesh/coxswain/internal/strict"
)

// Constructor makes a plugin of a kind K, such as Registry, of its entry's config: what WithConfig
// and its siblings return.
type Constructor[K any] struct {
	make   func(config []byte) (K, error)
	schema func() []byte
}

// Checker is an optional extra of configs.
type Checker interface {
	// Check says what is wrong with a config beyond what the tags of its fields say. A *FieldError
	// names the field. It may fill in what follows from other fields.
	Check() error
}

// WithConfig is for a plugin whose entry has a config, which is read into a C: a struct, or a map.
// The constructor gets it, and returns the plugin or an error; a *FieldError names the field at
// fault. It must not start goroutines.
//
// The config is read strictly. Keys are the fields' names as their json tags have them; fields
// without the tag are none. What the config doesn't name is as in defaults. An unknown key or a
// wrong value refuses the config, with the path of its field. Fields may be strings, bools,
// numbers, time.Duration (text such as 20ms), types with UnmarshalText (text), json.RawMessage
// (whatever stands there), and structs, pointers, lists and maps of these. More tags bound what a
// field may have:
//
//	type config struct {
//		File  string        `json:"file" required:"true" doc:"The file that is read."`
//		Every time.Duration `json:"every" min:"1s" doc:"How often it is looked at."`
//		Port  uint16        `json:"port" min:"1" doc:"The port of all services."`
//		By    []string      `json:"by" enum:"name,address"`
//	}
//
// min and max bound a number or duration, a string's bytes or a list's length; above is what a
// number must be larger than; enum has the values that a string, or each of a list's, may have.
// Where C, or a pointer to it, is a Checker, Check is called before the constructor.
//
// The JSON Schema of the config, which the core checks it against and editors complete it by, is
// made of the same: types, tags and defaults.
func WithConfig[C, K any](defaults C, construct func(config C) (K, error)) Constructor[K] {
	return Constructor[K]{
		make: func(text []byte) (made K, err error) {
			c := defaults
			if err := decodeConfig(text, &c); err != nil {
				return made, err
			}
			return construct(c)
		},
		schema: func() []byte { return strict.Schema(defaults) },
	}
}

// decodeConfig reads a config and checks it.
func decodeConfig(text []byte, into any) error {
	err := strict.Decode(text, into)
	var wrong *strict.Error
	if errors.As(err, &wrong) {
		return &FieldError{Field: wrong.Field, Err: errors.New(wrong.Reason)}
	}
	if c, ok := into.(Checker); ok && err == nil {
		return c.Check()
	}
	return err
}

// WithoutConfig is for a plugin that takes no config: an entry that has one is refused.
func WithoutConfig[K any](construct func() (K, error)) Constructor[K] {
	return Constructor[K]{
		make: func(text []byte) (made K, err error) {
			switch string(text) {
			case "", "null", "{}":
				return construct()
			}
			return made, errors.New("this plugin takes no config: leave it out")
		},
		schema: func() []byte { return []byte(`{"type":"object","additionalProperties":false}`) },
	}
}

// WithRawConfig is for a plugin whose config no Go type describes. The constructor gets it as JSON,
// nil where the entry has none. The schema is a JSON Schema (draft 2020-12) of it; nil: anything
// goes.
func WithRawConfig[K any](schema []byte, construct func(config []byte) (K, error)) Constructor[K] {
	return Constructor[K]{make: construct, schema: func() []byte { return schema }}
}
