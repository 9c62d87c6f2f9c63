package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type config struct {
	Name  string            `json:"name"`
	On    bool              `json:"on"`
	Small uint16            `json:"small"`
	List  []element         `json:"list"`
	Map   map[string]uint32 `json:"map"`
	Next  *element          `json:"next"`
	inner string
}

type element struct {
	N    int      `json:"n"`
	Tags []string `json:"tags"`
}

func TestDecode(t *testing.T) {
	got := config{Name: "default", Small: 7, inner: "kept"}
	err := Decode([]byte(`{"on": true, "list": [{"n": 1}, {"tags": ["a"]}], "map": {"x": 2}, "next": {"n": 3}, "small": null}`), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		Name: "default", On: true, Small: 7, List: []element{{N: 1}, {Tags: []string{"a"}}}, Map: map[string]uint32{"x": 2},
		Next: &element{N: 3}, inner: "kept",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if err := Decode(nil, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("no config: %v, %+v", err, got)
	}
}

// TestDefaultsStay: what is done to a config does nothing to the defaults that it was made from,
// whatever the text names.
func TestDefaultsStay(t *testing.T) {
	made := func() config {
		return config{List: []element{{Tags: []string{"a"}}}, Map: map[string]uint32{"x": 2}, Next: &element{N: 3, Tags: []string{"b"}}}
	}
	for _, text := range []string{"", "{}", `{"next": {"n": 4}}`, `{"map": {"x": 5}}`} {
		defaults := made()
		c := defaults
		if err := Decode([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		c.List[0].Tags[0], c.Map["x"], c.Next.N, c.Next.Tags[0] = "changed", 6, 7, "changed"
		if !reflect.DeepEqual(defaults, made()) {
			t.Errorf("%q: the defaults are %+v, %+v now", text, defaults, defaults.Next)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ in, field, reason string }{
		{`[]`, "", "expected an object"},
		{`{"nmae": 1}`, "nmae", `did you mean "name"`},
		{`{"Name": "a"}`, "Name", `did you mean "name"`},
		{`{"name": 1}`, "name", "a string, not a number"},
		{`{"name": {"a": 1}}`, "name", "a string, not an object"},
		{`{"on": "yes"}`, "on", "true or false"},
		{`{"small": 70000}`, "small", "from 0 to 65535, not 70000"},
		{`{"list": [{}, {"n": "x"}]}`, "list[1].n", "a whole number"},
		{`{"list": [{"tags": "a"}]}`, "list[0].tags", "a list"},
		{`{"map": {"x": -1}}`, "map.x", "from 0"},
		{`{"map": []}`, "map", "an object"},
		{`{"next": {"other": 1}}`, "next.other", "known are n, tags"},
		{`{"name": "a", "name": "b"}`, "name", "twice"},
		{`{"name": "a"} x`, "", "no JSON at byte 14"},
		{`{"name": `, "", "no JSON"},
		{`{"small": 1.5}`, "small", "not 1.5"},
	} {
		err := Decode([]byte(c.in), &config{})
		var field *Error
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(field.Reason, c.reason) {
			t.Errorf("%s: %v; want %s: …%s…", c.in, err, c.field, c.reason)
		}
	}
}

// TestEmbedded: fields of embedded structs are the object's own.
func TestEmbedded(t *testing.T) {
	var got struct {
		element
		Name string `json:"name"`
	}
	if err := Decode([]byte(`{"name": "a", "n": 3}`), &got); err != nil || got.Name != "a" || got.N != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Decode([]byte(`{"element": {}}`), &got); err == nil {
		t.Error("the struct's name is no key")
	}
}

// bounded has a field with each sort of tag.
type bounded struct {
	Host   string            `json:"host" required:"true" doc:"Where it listens."`
	By     string            `json:"by" enum:"name,address"`
	Any    []string          `json:"any" enum:"tcp,udp" min:"1" max:"2"`
	Port   uint16            `json:"port" min:"1" doc:"Its port."`
	Rate   float64           `json:"rate" above:"0"`
	Wait   time.Duration     `json:"wait" min:"1s" max:"1m" doc:"How long \"it\" waits."`
	Net    netip.Prefix      `json:"net"`
	Raw    json.RawMessage   `json:"raw"`
	Labels map[string]string `json:"labels"`
	On     bool              `json:"on"`
	TLS    *struct {
		File string `json:"file" required:"true"`
	} `json:"tls"`
	List []element `json:"list"`
}

func TestBounds(t *testing.T) {
	for _, c := range []struct{ in, field, reason string }{
		{``, "host", "is missing: Where it listens."},
		{`{"host": null}`, "host", "is missing"},
		{`{"host": ""}`, "host", "is missing"},
		{`{"host": "a", "by": "nmae"}`, "by", `"nmae" is none of its values; did you mean "name"?`},
		{`{"host": "a", "any": ["tcp", "sctp"]}`, "any[1]", "none of its values"},
		{`{"host": "a", "any": []}`, "any", "has 0 elements, and needs at least 1"},
		{`{"host": "a", "any": ["tcp", "tcp", "tcp"]}`, "any", "at most 2"},
		{`{"host": "a", "port": 0}`, "port", "0 is less than 1"},
		{`{"host": "a", "rate": 0}`, "rate", "0 is not more than 0"},
		{`{"host": "a", "wait": "1h"}`, "wait", "1h is not between 1s and 1m"},
		{`{"host": "a", "wait": "soon"}`, "wait", `"soon" is no duration`},
		{`{"host": "a", "wait": 5}`, "wait", "expected a string, not a number"},
		{`{"host": "a", "net": "10.0.0.0"}`, "net", "netip.ParsePrefix"},
		{`{"host": "a", "tls": {}}`, "tls.file", "is missing"},
	} {
		err := Decode([]byte(c.in), &bounded{})
		var field *Error
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(field.Reason, c.reason) {
			t.Errorf("%s: %v; want %s: …%s…", c.in, err, c.field, c.reason)
		}
	}
	got := bounded{Wait: 2 * time.Second}
	err := Decode([]byte(`{"host": "a", "any": ["udp"], "rate": 0.5, "wait": "", "net": "10.0.0.0/8", "raw": {"a": [1]}, "tls": {"file": "f"}}`), &got)
	if err != nil || got.Any[0] != "udp" || got.Rate != 0.5 || got.Wait != 2*time.Second || got.Net.Bits() != 8 ||
		string(got.Raw) != `{"a": [1]}` || got.TLS.File != "f" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSchema(t *testing.T) {
	got := Schema(bounded{Port: 80, Wait: time.Minute, Any: []string{"tcp"}, Labels: map[string]string{"a": "b"}})
	const want = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["host"],
  "properties": {
    "host": {"type": "string", "description": "Where it listens."},
    "by": {"type": "string", "enum": ["name", "address"]},
    "any": {"type": "array", "items": {"type": "string", "enum": ["tcp", "udp"]}, "minItems": 1, "maxItems": 2, "default": ["tcp"]},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 80, "description": "Its port."},
    "rate": {"type": "number", "exclusiveMinimum": 0},
    "wait": {"type": "string", "default": "1m", "description": "How long \"it\" waits."},
    "net": {"type": "string"},
    "raw": {},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"a": "b"}},
    "on": {"type": "boolean", "default": false},
    "tls": {"type": "object", "additionalProperties": false, "required": ["file"], "properties": {"file": {"type": "string"}}},
    "list": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
      "n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}
    }}}
  }
}`
	var have, should any
	if err := errors.Join(json.Unmarshal(got, &have), json.Unmarshal([]byte(want), &should)); err != nil || !reflect.DeepEqual(have, should) {
		t.Errorf("%v\n%s", err, got)
	}
}

// FuzzJSON: what encoding/json takes for a string, number or value is taken, as the same, and
// nothing else.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`"a\u00e4\ud83d\ude00\n"`, `"\ud83d"`, `"\ud83d\u0041"`, "\"\xff\"", `-0.5e+3`, `01`, `[1, {"a": null}]`,
		`{"a": 1,}`, `tru`, `"\x"`, ` 1 `, `-`, "\"\n\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > most {
			return
		}
		var raw json.RawMessage
		if err := Decode(text, &raw); (err == nil) != json.Valid(text) {
			t.Errorf("%q: %v", text, err)
		}
		var theirs, ours string
		if string(bytes.TrimSpace(text)) != "null" && json.Unmarshal(text, &theirs) == nil {
			if err := Decode(text, &ours); err != nil || ours != theirs {
				t.Errorf("%q: %q, %v", text, ours, err)
			}
		}
	})
}
