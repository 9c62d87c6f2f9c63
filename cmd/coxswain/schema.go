package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/spf13/cobra"
)

func schemaCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of plugins.yaml, for editors: its keys, and what the built-in plugins take",
		Long: `Print the JSON Schema (draft 2020-12) of plugins.yaml, for editors: its keys, the names of the built-in plugins, and what their configs may hold.
coxswain validate plugins.yaml sees more: places, programs, hashes and secrets.`,
		Example: `  coxswain schema > plugins.schema.json    # then, first in plugins.yaml: # yaml-language-server: $schema=plugins.schema.json`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := fullSchema()
			if err != nil {
				return err
			}
			_, err = p.out.Write(text)
			return err
		},
	}
}

// object is a JSON Schema, or a part of one.
type object = map[string]any

// fullSchema returns the host's schema with the built-in plugins in it.
func fullSchema() ([]byte, error) {
	var root object
	if err := json.Unmarshal(manifest.Schema(), &root); err != nil {
		return nil, err
	}
	defs := root["$defs"].(object)
	defs["Secret"] = object{
		"description": "A secret that stands elsewhere: in a file, or in a variable of the core's environment. In an " +
			"entry with forEach also row: a field of the instance's row.",
		"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
		"properties": object{"file": object{"type": "string"}, "env": object{"type": "string"}, "row": object{"type": "string"}},
	}
	entry := defs["Entry"].(object)
	entry["properties"].(object)["builtin"].(object)["enum"] = names()
	var rules []object
	for _, name := range names() {
		config, err := configSchema(name)
		if err != nil {
			return nil, err
		}
		rules = append(rules, object{
			"if":   object{"properties": object{"builtin": object{"const": name}}, "required": []string{"builtin"}},
			"then": object{"properties": object{"config": config}},
		})
	}
	entry["allOf"] = rules
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

// configSchema returns what a built-in plugin's config may be, as it stands in plugins.yaml:
// secrets stand elsewhere, and flags fill in what is required.
func configSchema(name string) (object, error) {
	var config object
	if err := json.Unmarshal(sdk.ConfigSchema(builtins()[name]), &config); err != nil {
		return nil, fmt.Errorf("%s: the schema of its config: %w", name, err)
	}
	delete(config, "$schema")
	delete(config, "required")
	for _, part := range []string{"properties", "items", "additionalProperties"} {
		orSecrets(config, part)
	}
	return config, nil
}

// orSecrets lets a secret stand for each value in a part of a schema.
func orSecrets(schema object, part string) {
	switch v := schema[part].(type) {
	case object:
		if part != "properties" {
			schema[part] = orSecret(v)
			return
		}
		for _, key := range slices.Collect(maps.Keys(v)) {
			if value, ok := v[key].(object); ok {
				v[key] = orSecret(value)
			}
		}
	}
}

func orSecret(value object) object {
	for _, part := range []string{"properties", "items", "additionalProperties"} {
		orSecrets(value, part)
	}
	if value["type"] == "object" || value["type"] == "array" {
		return value
	}
	either := object{"anyOf": []object{value, {"$ref": "#/$defs/Secret"}}}
	if d, ok := value["description"]; ok {
		either["description"] = d
		delete(value, "description")
	}
	return either
}
