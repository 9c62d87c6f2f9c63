package redact

import (
	"encoding/json"
	"strings"
)

// deepest is how deep a message or JSON is looked into; what is below is taken out.
const deepest = 64

// inJSON finds the secrets of JSON; ok is false for what is none.
func inJSON(text string) (found []span, ok bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	r := &reader{text: text}
	r.value(what{}, 0)
	return r.found, true
}

// reader goes through valid JSON.
type reader struct {
	text  string
	at    int
	found []span
}

func (r *reader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[r.at]) >= 0 {
		r.at++
	}
}

// quoted reads a string and returns where what is between its quotes is.
func (r *reader) quoted() span {
	r.at++
	from := r.at
	for r.text[r.at] != '"' {
		if r.text[r.at] == '\\' {
			r.at++
		}
		r.at++
	}
	r.at++
	return span{from, r.at - 1}
}

// string finds what looks like a secret in a string.
func (r *reader) string(s span) {
	for _, in := range spans(r.text[s.from:s.to]) {
		r.found = append(r.found, span{s.from + in.from, s.from + in.to})
	}
}

// what a value is, by the names above it.
type what struct {
	// secret: its texts are; number: so is a number; variables: it is an environment, whose values
	// are; listed: it is a variable of one.
	secret, number, variables, listed bool
}

// value reads a value.
func (r *reader) value(is what, depth int) {
	r.space()
	is.secret = is.secret || depth > deepest
	switch c := r.text[r.at]; {
	case c == '"':
		s := r.quoted()
		if is.secret {
			r.found = append(r.found, s)
			return
		}
		r.string(s)
	case c == '{':
		r.object(is, depth+1)
	case c == '[':
		r.at++
		for r.space(); r.text[r.at] != ']'; r.space() {
			r.value(is, depth+1)
		}
		r.at++
	default:
		from := r.at
		for r.at < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.at]) < 0 {
			r.at++
		}
		if is.number && c != 't' && c != 'f' && c != 'n' {
			r.found = append(r.found, span{from, r.at})
		}
	}
}

// object reads one. Of {"name": "authorization", "value": "…"} the value is a secret.
func (r *reader) object(is what, depth int) {
	r.at++
	telling, values := false, []span{}
	for r.space(); r.text[r.at] != '}'; r.space() {
		s := r.quoted()
		key := r.text[s.from:s.to]
		r.space()
		from := r.at
		r.value(keyed(is, key, r.text[from]), depth)
		switch text := r.text[from:r.at]; {
		case text[0] != '"':
		case pairName(key):
			telling = telling || Header(text[1:len(text)-1])
		case pairValue(key):
			values = append(values, span{from + 1, r.at - 1})
		}
	}
	r.at++
	if telling {
		r.found = append(r.found, values...)
	}
}

// keyed is what the value of a key is that begins with a character.
func keyed(is what, key string, first byte) what {
	at := what{secret: is.secret || Name(key), number: Name(key)}
	switch {
	case is.variables && key == "value":
		at.secret, at.number = true, true
	case variables(key):
		at.variables = first == '['
		at.secret = at.secret || first == '{'
	}
	return at
}

// variables reports whether a key is that of an environment.
func variables(key string) bool {
	return key == "env" || key == "environment_variables" || key == "environmentVariables"
}

// pairName and pairValue are the keys of what says a name and a value.
func pairName(key string) bool { return key == "key" || key == "name" || key == "header" }

func pairValue(key string) bool { return key == "value" || key == "raw_value" || key == "rawValue" }
