package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const forEach = `plugins:
  - {name: a, kind: registry, builtin: registry/a}
  - name: each
    kind: registry
    builtin: registry/b
    forEach: {table: things, max: 2}
    limits: {sync: 5s}
    config: {id: {row: id}, n: [{row: number}, {deep: {row: yes}}], token: {env: TOKEN}, plain: row}
  - {name: z, kind: registry, builtin: registry/a, forEach: {table: others, wait: 1s}}
  - {name: off, kind: registry, builtin: registry/a, forEach: {table: nothing}, disabled: true}
`

// TestExpand: instances stand behind their entry in order of their keys, with their rows' fields in
// their configs.
func TestExpand(t *testing.T) {
	set, err := Parse("plugins.yaml", []byte(forEach))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"others", "things"}, set.Tables()); diff != "" {
		t.Error(diff)
	}
	if each, _ := set.Get("each"); each.ForEach.Wait != 30*time.Second || each.Runs() {
		t.Errorf("%+v", each.ForEach)
	}
	rows := map[string][]Row{
		"things": {
			{"two", []byte(`{"id": "2", "number": 18446744073709551615, "yes": true}`)},
			{"a.b-c_D", []byte(`{"id": "{\"file\": \"x\"}", "number": 1, "yes": false, "more": {}}`)},
			{"three", []byte(`{"id": "3", "number": 1, "yes": true}`)}, {"", []byte(`{}`)}, {strings.Repeat("x", 64), []byte(`{}`)}, {"null", []byte(`null`)},
			{"object", []byte(`{"id": {}, "number": 1, "yes": true}`)},
		},
		"others": {{"1", []byte(`{}`)}}, "nothing": {{"1", []byte(`{}`)}},
	}
	all, misfits := set.Expand(func(table string) []Row { return rows[table] })
	var got []string
	for _, e := range all.Plugins {
		got = append(got, fmt.Sprintf("%s %t %s %s", e.Name, e.Runs(), e.Of, e.Config))
	}
	want := []string{
		"a true  ", `each false  {"id":{"row":"id"},"n":[{"row":"number"},{"deep":{"row":"yes"}}],"plain":"row","token":{"env":"TOKEN"}}`,
		`each@a.b-c_D true each {"id":"{\"file\": \"x\"}","n":[1,{"deep":false}],"plain":"row","token":{"env":"TOKEN"}}`,
		`each@three true each {"id":"3","n":[1,{"deep":true}],"plain":"row","token":{"env":"TOKEN"}}`,
		"z false  ", "z@1 true z ", "off false  ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	reasons := map[string]string{}
	for _, m := range misfits {
		reasons[m.Key] = m.Reason
	}
	key := "its key can't be part of a name: it is not made of letters, digits, `-`, `_` and `.`, at most 63 of them"
	if diff := cmp.Diff(map[string]string{
		"": key, strings.Repeat("x", 64): key, "null": "it is no JSON object", "two": "there are 2 instances already (forEach.max)",
		"object": "its field id is no string, number or boolean, which config.id wants",
	}, reasons); diff != "" {
		t.Error(diff)
	}
}
