package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Fields says which fields of a resource differ, one a line, at most as many as are asked for:
// `route.cluster: "a" -> "b"`. Elements of lists that have names go by them. It is nil for types,
// or types within, that this binary doesn't know. Secrets are masked: it is said that they differ,
// not what they are.
func Fields(typeURL string, old, now *Body, most int) []string {
	without := redact.Numbered()
	was, errWas := plain(typeURL, without(typeURL, old.Value()))
	is, errIs := plain(typeURL, without(typeURL, now.Value()))
	if errWas != nil || errIs != nil {
		return nil
	}
	d := &fieldLines{most: most}
	d.compare("", was, is)
	if d.more > 0 {
		d.lines = append(d.lines, fmt.Sprintf("and %d more", d.more))
	}
	return d.lines
}

// plain decodes a resource into maps, lists and scalars.
func plain(typeURL string, value []byte) (v any, err error) {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil, err
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(value, m); err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

type fieldLines struct {
	most, more int
	lines      []string
}

func (d *fieldLines) say(path, text string) {
	if len(d.lines) == d.most {
		d.more++
		return
	}
	d.lines = append(d.lines, strings.TrimPrefix(path, ".")+": "+text)
}

func (d *fieldLines) compare(path string, was, is any) {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			d.maps(path, was, is)
			return
		}
	case []any:
		if is, ok := is.([]any); ok {
			d.maps(path, elements(was), elements(is))
			return
		}
	}
	switch a, b := brief(was), brief(is); {
	case equal(was, is):
	case a == b && strings.Contains(a, redact.Word):
		d.say(path, "(masked) changed")
	default:
		d.say(path, a+" -> "+b)
	}
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a) // of maps, lists and scalars: it can't fail
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (d *fieldLines) maps(path string, was, is map[string]any) {
	all := map[string]bool{}
	for k := range was {
		all[k] = true
	}
	for k := range is {
		all[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		below := path + "." + k
		if strings.HasPrefix(k, "[") {
			below = path + k
		}
		a, had := was[k]
		b, has := is[k]
		switch {
		case !has:
			d.say(below, "− "+brief(a))
		case !had:
			d.say(below, "+ "+brief(b))
		default:
			d.compare(below, a, b)
		}
	}
}

// elements names a list's elements: by their names where each has one of its own, else by their
// places.
func elements(list []any) map[string]any {
	named := make(map[string]any, len(list))
	for _, e := range list {
		m, _ := e.(map[string]any)
		if name, ok := m["name"].(string); ok && name != "" {
			named["["+name+"]"] = e
		}
	}
	if len(named) == len(list) {
		return named
	}
	placed := make(map[string]any, len(list))
	for i, e := range list {
		placed[fmt.Sprintf("[%d]", i)] = e
	}
	return placed
}

// mostShown is how many characters of a value are shown.
const mostShown = 120

// brief is a value in a line.
func brief(v any) string {
	text, _ := json.Marshal(v)
	plain := redact.Unnumbered(string(text))
	if r := []rune(plain); len(r) > mostShown {
		return string(r[:mostShown]) + "…"
	}
	return plain
}
