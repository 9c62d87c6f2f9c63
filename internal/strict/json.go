package strict

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// reader reads JSON text (RFC 8259), a value at a time. Package encoding/json would be a third of a
// small WASM module.
type reader struct {
	text []byte
	at   int
}

// space skips what may stand between tokens, and returns the next byte; 0 at the end.
func (r *reader) space() byte {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return r.text[r.at]
		}
	}
	return 0
}

// accept reports whether the next token is this byte, and skips it.
func (r *reader) accept(b byte) bool {
	if r.space() != b {
		return false
	}
	r.at++
	return true
}

// word reports whether the next token is this word, and skips it.
func (r *reader) word(word string) bool {
	r.space()
	if len(r.text)-r.at < len(word) || string(r.text[r.at:r.at+len(word)]) != word {
		return false
	}
	r.at += len(word)
	return true
}

// broken is the error for text that is no JSON.
func (r *reader) broken() error {
	return &Error{Reason: "no JSON at byte " + strconv.Itoa(r.at)}
}

// most is how deep lists and objects may be in each other.
const most = 200

// skip passes over a value and returns its text.
func (r *reader) skip(depth int) ([]byte, error) {
	next := r.space()
	begin := r.at
	var err error
	switch {
	case depth > most:
		return nil, &Error{Reason: "lists and objects are in each other more than " + strconv.Itoa(most) + " deep"}
	case next == '{':
		err = r.object(func(string) error { _, err := r.skip(depth + 1); return err })
	case next == '[':
		err = r.list(func(int) error { _, err := r.skip(depth + 1); return err })
	case next == '"':
		_, err = r.string()
	case r.word("true"), r.word("false"), r.word("null"):
	default:
		_, err = r.number()
	}
	return r.text[begin:r.at], err
}

// object calls each for each key, which must read the key's value.
func (r *reader) object(each func(key string) error) error {
	if !r.accept('{') {
		return r.broken()
	}
	if r.accept('}') {
		return nil
	}
	for {
		r.space()
		key, err := r.string()
		if err != nil {
			return err
		}
		if !r.accept(':') {
			return r.broken()
		}
		if err := each(key); err != nil {
			return err
		}
		if r.accept('}') {
			return nil
		}
		if !r.accept(',') {
			return r.broken()
		}
	}
}

// list calls each for each element, which it must read.
func (r *reader) list(each func(i int) error) error {
	if !r.accept('[') {
		return r.broken()
	}
	if r.accept(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := each(i); err != nil {
			return err
		}
		if r.accept(']') {
			return nil
		}
		if !r.accept(',') {
			return r.broken()
		}
	}
}

// number returns the text of a number.
func (r *reader) number() (string, error) {
	begin := r.at
	digits := func() bool {
		from := r.at
		for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
			r.at++
		}
		return r.at > from
	}
	one := func(of string) bool {
		for i := range len(of) {
			if r.at < len(r.text) && r.text[r.at] == of[i] {
				r.at++
				return true
			}
		}
		return false
	}
	one("-")
	if !one("0") && !digits() || one(".") && !digits() {
		return "", r.broken()
	}
	if one("eE") {
		one("+-")
		if !digits() {
			return "", r.broken()
		}
	}
	return string(r.text[begin:r.at]), nil
}

// string returns the next token, a string. What is no UTF-8 becomes U+FFFD.
func (r *reader) string() (string, error) {
	if r.at >= len(r.text) || r.text[r.at] != '"' {
		return "", r.broken()
	}
	r.at++
	var b []byte
	for r.at < len(r.text) {
		c := r.text[r.at]
		switch {
		case c == '"':
			r.at++
			return string(b), nil
		case c < ' ':
			return "", r.broken()
		case c == '\\':
			var err error
			if b, err = r.escaped(b); err != nil {
				return "", err
			}
		case c < utf8.RuneSelf:
			b = append(b, c)
			r.at++
		default:
			letter, size := utf8.DecodeRune(r.text[r.at:])
			b = utf8.AppendRune(b, letter)
			r.at += size
		}
	}
	return "", r.broken()
}

// escaped appends what a backslash and what follows it stand for.
func (r *reader) escaped(b []byte) ([]byte, error) {
	const names, values = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if r.at+1 >= len(r.text) {
		return nil, r.broken()
	}
	c := r.text[r.at+1]
	for i := range len(names) {
		if names[i] == c {
			r.at += 2
			return append(b, values[i]), nil
		}
	}
	letter, ok := r.unit()
	if !ok {
		return nil, r.broken()
	}
	if utf16.IsSurrogate(letter) {
		before := r.at
		second, _ := r.unit()
		if letter = utf16.DecodeRune(letter, second); letter == utf8.RuneError {
			r.at = before
		}
	}
	return utf8.AppendRune(b, letter), nil
}

// unit reads \uXXXX.
func (r *reader) unit() (rune, bool) {
	const size = 6
	if r.at+size > len(r.text) || r.text[r.at] != '\\' || r.text[r.at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.text[r.at+2:r.at+size]), 16, 16)
	if err != nil {
		return 0, false
	}
	r.at += size
	return rune(n), true
}

// quote returns a string as JSON.
func quote(s string) string {
	const hex = "0123456789abcdef"
	b := []byte{'"'}
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return string(append(b, '"'))
}
