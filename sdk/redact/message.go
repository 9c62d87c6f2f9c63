package redact

import (
	"slices"
	"strings"
)

// Message returns an encoded message, of a type by its URL, without what is secret. It decodes, and
// says the same of all else.
func Message(typeURL string, value []byte) []byte {
	w := walk{by: word}
	return w.message(find(typeURL), value, what{}, 0)
}

// Row is Message for the payload of a row of a table: a message, JSON, or a text.
func Row(table string, payload []byte) []byte {
	w := walk{by: word}
	return w.row(table, payload)
}

// SameLength is Row for who refers to parts of what it returns by their places: all stays where it
// is, and letters x take a secret's place. Of resources table is empty: their type is not known.
func SameLength(table string, payload []byte) []byte {
	w := walk{by: func(s string) string { return strings.Repeat("x", len(s)) }, fixed: true}
	return w.row(table, payload)
}

// Has reports whether there is something secret in an encoded message.
func Has(typeURL string, value []byte) bool {
	found := false
	w := walk{by: func(s string) string { found = true; return s }}
	w.message(find(typeURL), value, what{}, 0)
	return found || w.cut
}

// Values returns what is secret in an encoded message, each once, in order.
func Values(typeURL string, value []byte) []string {
	var all []string
	w := walk{by: func(s string) string { all = append(all, s); return s }}
	w.message(find(typeURL), value, what{}, 0)
	slices.Sort(all)
	return slices.Compact(all)
}

// Numbered returns what does what Message does and tells secrets apart: the first one that it meets
// is [redacted], the next one [redacted 2], and so on, so that what is compared afterwards is known
// to differ.
func Numbered() func(typeURL string, value []byte) []byte {
	known := map[string]string{}
	by := func(s string) string {
		if known[s] == "" {
			known[s] = numbered(len(known) + 1)
		}
		return known[s]
	}
	return func(typeURL string, value []byte) []byte {
		w := walk{by: by}
		return w.message(find(typeURL), value, what{}, 0)
	}
}
