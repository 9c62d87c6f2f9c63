package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a part of a text that is secret.
type span struct{ from, to int }

var (
	block = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	// encoded is a PEM block in base64, as Kubernetes has it.
	encoded = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/_-]*=*`)
	// pair is NAME=VALUE, "NAME": "VALUE" or NAME: VALUE; whether it is secret says the name.
	pair = regexp.MustCompile(
		`([A-Za-z0-9_.-]*(?i:passw|passphrase|secret|token|key|authorization|credential)[A-Za-z0-9_-]*)(\\?["']?)\s*([=:])\s*(?:(?i:bearer|basic)\s+)?` +
			`(?:\\"((?:[^"\\]|\\[^"])*)|"((?:[^"\\]|\\.)*)|'([^']*)|([^\s"',;&(){}\[\]<>\\]+))`,
	)
	inline = regexp.MustCompile(`inline_?(?i:string|bytes)\\?"?\s*[:=]\s*(?:\\"((?:[^"\\]|\\[^"])+)|"((?:[^"\\]|\\.)+))`)
	bearer = regexp.MustCompile(`(?i:\bbearer)[ +]+([A-Za-z0-9._~+/=:-]+)`)
	basic  = regexp.MustCompile(`(?i:\bbasic)[ +]+([A-Za-z0-9+/_-]{8,}=*)`)
	// hints and schemes are what must be there for others to find something.
	hints   = regexp.MustCompile(`(?i)passw|passphrase|secret|token|key|authorization|credential|inline_?(?:string|bytes)`)
	schemes = regexp.MustCompile(`(?i)bearer|basic`)
	user    = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s@:"'<>]*:([^/\s@"'<>]+)@|https?://([^/\s@:"'<>]+)@`)
)

// plain are words that follow "bearer" in sentences.
var plain = []string{"token", "tokens", "auth", "authentication", "authorization", "credential", "credentials", "header", "headers", "is", "was", "and", "or"}

// prose are names after which a sentence goes on behind a colon: an equals sign or quotes make them
// names.
var prose = []string{"secret", "token", "credential", "credentials", "authorization"}

// Text returns a text without what looks like a secret: private keys in PEM, values of names that
// Name takes (password=…, "token": "…"), what stands behind Bearer and Basic, and passwords
// of URLs.
func Text(text string) string { return cut(text, spans(text), word) }

// String is Text for a value that may be JSON: then names of its fields count.
func String(text string) string { return cut(text, within(text), word) }

// Map is String for values by their names, such as annotations: those of which Name says so are
// taken out whole. What it is given is not changed.
func Map(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	out := make(map[string]string, len(values))
	for name, value := range values {
		if out[name] = String(value); Name(name) && value != "" {
			out[name] = Word
		}
	}
	return out
}

// Strings is Text for each string of JSON, whatever its name; what is no JSON is a text.
func Strings(page []byte) []byte {
	text := string(page)
	if !json.Valid(page) {
		return []byte(Text(text))
	}
	r := &reader{text: text}
	for r.at < len(text) {
		if text[r.at] == '"' {
			r.string(r.quoted())
		} else {
			r.at++
		}
	}
	return []byte(cut(text, r.found, word))
}

// within finds the secrets of a text, or of JSON.
func within(text string) []span {
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
		if found, ok := inJSON(text); ok {
			return found
		}
	}
	return spans(text)
}

// spans finds what looks like a secret.
func spans(text string) (all []span) {
	add := func(from, to int) {
		if from >= 0 && to > from {
			all = append(all, span{from, to})
		}
	}
	if strings.Contains(text, "PRIVATE KEY-----") {
		for _, m := range block.FindAllStringIndex(text, -1) {
			add(m[0], m[1])
		}
	}
	if strings.Contains(text, "LS0tLS1CRUdJTi") {
		for _, m := range encoded.FindAllStringIndex(text, -1) {
			if isKey(text[m[0]:m[1]]) {
				add(m[0], m[1])
			}
		}
	}
	if strings.Contains(text, "://") && strings.Contains(text, "@") {
		for _, m := range user.FindAllStringSubmatchIndex(text, -1) {
			add(m[2], m[3])
			add(m[4], m[5])
		}
	}
	if strings.ContainsAny(text, "=:") && hints.MatchString(text) {
		for _, m := range pair.FindAllStringSubmatchIndex(text, -1) {
			if !named(text[m[2]:m[3]], text[m[4]:m[5]], text[m[6]:m[7]]) {
				continue
			}
			for i := 8; i < len(m); i += 2 {
				add(m[i], m[i+1])
			}
		}
		for _, m := range inline.FindAllStringSubmatchIndex(text, -1) {
			add(m[2], m[3])
			add(m[4], m[5])
		}
	}
	if !schemes.MatchString(text) {
		return all
	}
	for _, m := range bearer.FindAllStringSubmatchIndex(text, -1) {
		if !slices.Contains(plain, strings.ToLower(text[m[2]:m[3]])) {
			add(m[2], m[3])
		}
	}
	for _, m := range basic.FindAllStringSubmatchIndex(text, -1) {
		if raw, err := base64.StdEncoding.DecodeString(text[m[2]:m[3]]); err == nil && strings.Contains(string(raw), ":") {
			add(m[2], m[3])
		}
	}
	return all
}

// named reports whether what stands before a value is a secret's name.
func named(name, quote, sign string) bool {
	return Name(name) && (sign == "=" || quote != "" || !slices.Contains(prose, strings.ToLower(name)))
}

func isKey(text string) bool {
	const enough = 64 // of characters, for the first line
	text = text[:min(len(text), enough)]
	raw, _ := base64.StdEncoding.DecodeString(text[:len(text)/4*4])
	return strings.Contains(string(raw), "PRIVATE KEY")
}

// filler is what takes the place of a secret.
type filler func(secret string) string

var done = regexp.MustCompile(`^\[(?:secret|redacted(?: \d+)?)\]$`)

// word is Word, but for what has been taken out before.
func word(secret string) string {
	if done.MatchString(secret) {
		return secret
	}
	return Word
}

// cut replaces spans, which may lie in each other.
func cut(text string, all []span, by filler) string {
	if len(all) == 0 {
		return text
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var out strings.Builder
	end := 0
	for i := 0; i < len(all); {
		s := all[i]
		for i++; i < len(all) && all[i].from < s.to; i++ {
			s.to = max(s.to, all[i].to)
		}
		out.WriteString(text[end:s.from])
		out.WriteString(by(text[s.from:s.to]))
		end = s.to
	}
	out.WriteString(text[end:])
	return out.String()
}

// readable reports whether bytes are a text.
func readable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
