package host

import (
	"strings"
	"testing"
)

func TestConforms(t *testing.T) {
	const schema = `{"type": "object", "additionalProperties": false, "required": ["dir"], "properties": {
		"dir": {"type": "string"}, "ports": {"type": "array", "items": {"type": "object", "properties": {"number": {"type": "integer", "maximum": 65535}}}}}}`
	for name, c := range map[string]struct{ config, schema, want string }{
		"good":          {"{dir: x, ports: [{number: 80}]}", schema, ""},
		"none":          {"{}", "", ""},
		"deep":          {"{dir: x, ports: [{number: 80},\n {number: 70000}]}", schema, "(plugins.yaml:3:11): ports[1].number: maximum: 70000"},
		"lacks a field": {"{ports: []}", schema, "(plugins.yaml:2:60): required: missing properties: [\"dir\"]"},
		"unknown":       {"{dir: x, dri: y}", schema, `["dri"]`},
		"by definition": {
			"{dir: x, ports: [{number: 0}]}",
			`{"$defs": {"port": {"properties": {"number": {"minimum": 1}}}}, "properties": {"ports": {"items": {"$ref": "#/$defs/port"}}}}`,
			"ports[0].number: ",
		},
		"draft 7":         {"{dir: 3}", `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"dir": {"type": "string"}}}`, "dir: type: "},
		"no schema":       {"{dir: x}", `{"type": 5}`, "the schema of its config"},
		"another's pages": {"{dir: x}", `{"$ref": "http://127.0.0.1:1/schema.json"}`, "the schema of its config"},
	} {
		t.Run(name, func(t *testing.T) {
			set := parsed(t, "plugins:\n  - {name: a, kind: registry, builtin: registry/a, config: "+c.config+"}\n")
			err := conforms(set.Plugins[0], &filled{config: set.Plugins[0].Config}, []byte(c.schema))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
