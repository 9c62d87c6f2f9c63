package redact

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// guess goes through bytes whose type is not known: a text, JSON, or a message. In a message
// entries of maps, headers and messages of known types are known by their shape.
func (w *walk) guess(b []byte, is what, depth int) []byte {
	if len(b) == 0 {
		return b
	}
	if depth > deepest {
		return w.gone(b)
	}
	text := readable(b)
	if text && len(within(string(b))) > 0 || text && looksLikeJSON(b) {
		if is.secret {
			return w.all(b)
		}
		return w.text(b)
	}
	all, ok := fields(b)
	if !ok || !plausible(all) {
		switch {
		case is.secret:
			return w.all(b)
		case strings.Contains(string(b), "PRIVATE KEY-----"):
			return w.text(b)
		}
		return b
	}
	if is.secret && text {
		return w.all(b)
	}
	if md := anyOf(all); md != "" {
		return w.message(find("google.protobuf.Any"), b, is, depth+1)
	}
	telling := shaped(all)
	return w.each(all, b, func(f field) []byte {
		if f.kind != protowire.BytesType {
			return nil
		}
		return w.guess(f.value, what{secret: is.secret || telling && f.number > 1}, depth+1)
	})
}

func looksLikeJSON(b []byte) bool {
	return (b[0] == '{' || b[0] == '[') && (b[len(b)-1] == '}' || b[len(b)-1] == ']')
}

// plausible reports whether fields are those of a message that somebody made: bytes of another kind
// rarely have low numbers.
func plausible(all []field) bool {
	const highest = 2000
	for _, f := range all {
		if f.number > highest || f.kind == protowire.StartGroupType {
			return false
		}
	}
	return len(all) > 0
}

// anyOf returns the URL of a google.protobuf.Any of a type that this program knows.
func anyOf(all []field) string {
	if len(all) > 2 || len(all) == 0 || all[0].number != 1 || !strings.Contains(string(all[0].value), "/") || find(string(all[0].value)) == nil {
		return ""
	}
	return string(all[0].value)
}

var identifier = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// shaped reports whether a message looks like an entry of a map, or a header, whose name is one of
// a secret.
func shaped(all []field) bool {
	const most = 3
	return len(all) > 1 && len(all) <= most && all[0].number == 1 && all[0].kind == protowire.BytesType &&
		identifier.Match(all[0].value) && Header(string(all[0].value))
}
