package schema

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apicel "k8s.io/apiserver/pkg/apis/cel"
)

// compiled is a schema that is ready to be used, by several goroutines.
type compiled struct {
	structural *schema.Structural
	// defaults and lists are what of it leads to default values, and to lists that are sets or
	// maps.
	defaults, lists *schema.Structural
	// quick is nil where the schema has what it can't check.
	quick *quick
	// whole is the API server's own code.
	whole func() (*whole, error)
}

// whole checks an object, and says what is wrong with it.
type whole struct {
	openAPI validation.SchemaValidator
	// rules are the CEL programs; nil where the schema has none.
	rules *cel.Validator
}

// compile makes a schema ready.
func compile(text []byte) (*compiled, error) {
	var props v1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := &compiled{
		structural: structural,
		defaults:   leading(structural, hasDefaults),
		lists:      leading(structural, isSetOrMap),
		whole:      sync.OnceValues(func() (*whole, error) { return newWhole(&internal, structural) }),
	}
	if q, err := newQuick(structural); err == nil {
		c.quick = q
	}
	return c, nil
}

// newWhole takes up to 40 ms and 4 MB: types and programs are made for each place at which a CEL
// rule stands.
func newWhole(internal *apiextensions.JSONSchemaProps, structural *schema.Structural) (*whole, error) {
	openAPI, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &whole{openAPI, cel.NewValidator(structural, true, apicel.PerCallLimit)}, nil
}
