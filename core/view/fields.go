package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Fields says which fields of a resource differ, one a line, at most as many as are asked for:
// `route.cluster: "a" -> "b"`. Elements of lists that have names go by them. It is nil for types,
// or types within, that this binary doesn't know. What looks like a secret is masked.
func Fields(typeURL string, old, now *Body, most int) []string {
	was, errWas := plain(typeURL, old.Value())
	is, errIs := plain(typeURL, now.Value())
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
	if a, b := brief(path, was), brief(path, is); a != b || !equal(was, is) {
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
			d.say(below, "− "+brief(below, a))
		case !had:
			d.say(below, "+ "+brief(below, b))
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

// brief is a value in a line; what looks like a secret is not shown.
func brief(path string, v any) string {
	if secret(path) {
		return "(masked)"
	}
	if m, ok := v.(map[string]any); ok {
		v = masked(path, m)
	} else {
		v = maskedList(path, v)
	}
	text, _ := json.Marshal(v)
	if r := []rune(string(text)); len(r) > mostShown {
		return string(r[:mostShown]) + "…"
	}
	return string(text)
}

// masked is a copy without what looks like a secret, however deep.
func masked(path string, m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		below := path + "." + k
		switch inner, isMap := v.(map[string]any); {
		case secret(below):
			out[k] = "(masked)"
		case isMap:
			out[k] = masked(below, inner)
		default:
			out[k] = maskedList(below, v)
		}
	}
	return out
}

func maskedList(path string, v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(list))
	for i, e := range list {
		if m, ok := e.(map[string]any); ok {
			e = masked(path, m)
		}
		out[i] = e
	}
	return out
}

// secret reports whether any part of a path is the name of a field that holds secrets.
func secret(path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc([]string{"private_key", "password", "passphrase", "secret", "token", "api_key", "authorization", "hmac", "session_ticket_keys", "credential"},
		func(word string) bool { return strings.Contains(path, word) })
}
