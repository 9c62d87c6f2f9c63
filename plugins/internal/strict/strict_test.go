package strict

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
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

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ in, field, reason string }{
		{`[]`, "", "expected an object"},
		{`{"nmae": 1}`, "nmae", `did you mean "name"`},
		{`{"Name": "a"}`, "Name", `did you mean "name"`},
		{`{"name": 1}`, "name", "a string, not 1"},
		{`{"on": "yes"}`, "on", "true or false"},
		{`{"small": 70000}`, "small", "from 0 to 65535, not 70000"},
		{`{"list": [{}, {"n": "x"}]}`, "list[1].n", "a number"},
		{`{"list": [{"tags": "a"}]}`, "list[0].tags", "a list"},
		{`{"map": {"x": -1}}`, "map.x", "from 0"},
		{`{"map": []}`, "map", "an object"},
		{`{"next": {"other": 1}}`, "next.other", "known are n, tags"},
	} {
		err := Decode([]byte(c.in), &config{})
		var field *sdk.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(field.Err.Error(), c.reason) {
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
