package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// object is a JSON Schema, or a part of one.
type object = map[string]any

// generate makes the schema; source is the Go file with the types' comments.
func generate(source []byte) ([]byte, error) {
	docs, err := comments(source)
	if err != nil {
		return nil, err
	}
	g := &generator{docs: docs, definitions: object{}}
	root := g.structure(reflect.TypeFor[manifest.Set]())
	if len(g.missing) > 0 {
		return nil, fmt.Errorf("no comment on %s", strings.Join(g.missing, ", "))
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://coxswain-mesh.github.io/plugins.schema.json"
	root["title"] = "plugins.yaml of Coxswain"
	root["$defs"] = g.definitions
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(root)
	return out.Bytes(), err
}

type generator struct {
	docs        map[string]string
	definitions object
	missing     []string
}

// structure is the schema of a struct type.
func (g *generator) structure(t reflect.Type) object {
	properties := object{}
	var need []string
	for _, f := range manifest.Fields(t) {
		p := g.value(f.Type, f.Enum)
		p["description"] = g.comment(t.Name() + "." + f.Name)
		properties[f.Key] = p
		if f.Need {
			need = append(need, f.Key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false, "description": g.comment(t.Name())}
	if need != nil {
		slices.Sort(need)
		s["required"] = need
	}
	if t == reflect.TypeFor[manifest.Entry]() {
		by := func(carrier, key string) object {
			return object{"required": []string{carrier}, "properties": object{carrier: object{"required": []string{key}}}}
		}
		s["anyOf"] = []object{{"required": []string{"builtin"}}, {"required": []string{"plugin"}}, by("process", "command"), by("wasm", "path")}
		s["dependentSchemas"] = object{
			"builtin": object{"properties": object{"process": false, "wasm": false, "plugin": false}},
			"process": object{"properties": object{"wasm": false}},
			"pull":    object{"required": []string{"plugin"}},
			"plugin": object{"properties": object{
				"process": object{"properties": object{"command": false}},
				"wasm":    object{"properties": object{"path": false, "sha256": false}},
				"sha256":  false,
			}},
		}
	}
	return s
}

// comment is what the source says of a type or TYPE.FIELD.
func (g *generator) comment(name string) string {
	if g.docs[name] == "" {
		g.missing = append(g.missing, name)
	}
	return g.docs[name]
}

// value is the schema of a key's value.
func (g *generator) value(t reflect.Type, enum string) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := scalar(t); known != nil {
		return known
	}
	switch t.Kind() {
	case reflect.Struct:
		if g.definitions[t.Name()] == nil {
			g.definitions[t.Name()] = object{}
			g.definitions[t.Name()] = g.structure(t)
			if w, ok := reflect.New(t).Interface().(interface{ Words() []string }); ok {
				g.definitions[t.Name()] = object{"anyOf": []any{object{"enum": w.Words()}, g.definitions[t.Name()]}}
			}
		}
		return object{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return object{"type": "array", "items": g.value(t.Elem(), enum)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.value(t.Elem(), "")}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		if enum != "" {
			return object{"enum": strings.Split(enum, ",")}
		}
		return object{"type": "string"}
	}
	if t.Kind() == reflect.Int32 {
		return object{"type": "integer", "minimum": math.MinInt32, "maximum": math.MaxInt32}
	}
	return object{"type": "integer", "minimum": 0}
}

// scalar is the schema of a type that reads itself; nil for others.
func scalar(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[manifest.JSON]():
		return object{}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": "^([0-9]+(\\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$"}
	case reflect.TypeFor[manifest.Size]():
		return object{"type": []string{"string", "integer"}, "pattern": "^[0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?$", "minimum": 1}
	case reflect.TypeFor[manifest.Digest]():
		return object{"type": "string", "pattern": "^[0-9a-f]{64}$"}
	case reflect.TypeFor[manifest.Reference]():
		return object{"type": "string", "pattern": "^oci://[^/@ ]+/[a-z0-9._/-]+(:[^@/: ]+)?(@sha256:[0-9a-f]{64})?$", "maxLength": 512}
	case reflect.TypeFor[manifest.HeaderName]():
		return object{"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,126}$", "not": object{"pattern": "^grpc-|-bin$"}}
	case reflect.TypeFor[manifest.Glob]():
		return object{"type": []string{"string", "number", "boolean"}, "minLength": 1, "maxLength": 1024}
	case reflect.TypeFor[manifest.Share]():
		return object{"type": []string{"string", "integer"}, "pattern": "^([1-9][0-9]*|[1-9][0-9]?%|100%)$", "minimum": 1}
	case reflect.TypeFor[manifest.TypeURL]():
		short := []string{}
		for name := range manifest.ShortTypes() {
			short = append(short, name)
		}
		slices.Sort(short)
		return object{"type": "string", "anyOf": []object{{"enum": short}, {"pattern": "^[^ ]*[./][^ ]*$"}}}
	}
	return nil
}
