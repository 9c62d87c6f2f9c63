package xfcc

import (
	"errors"
	"fmt"
	"strings"
)

// element is what is said of one certificate.
type element struct {
	uris, dns []string
	subject   string
}

// names of the certificate's: URIs first.
func (e element) names() (all []string) {
	for _, name := range append(append(append(all, e.uris...), e.dns...), commonName(e.subject)) {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// parse reads the header. Elements are separated by commas, their pairs KEY=VALUE by semicolons;
// keys are in any case, and a value in double quotes may have all of these, and quotes after a
// backslash. There is one element at least. Source: Envoy, HTTP header x-forwarded-client-cert.
func parse(text string) (all []element, err error) {
	var e element
	for {
		key, rest, ok := strings.Cut(text, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); !ok || key == "" || strings.ContainsAny(key, `,;"`) {
			return nil, fmt.Errorf("certificate %d: a pair KEY=VALUE is missing", len(all)+1)
		}
		value, rest, err := cutValue(rest)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(all)+1, err)
		}
		switch key {
		case "uri":
			e.uris = append(e.uris, value)
		case "dns":
			e.dns = append(e.dns, value)
		case "subject":
			e.subject = value
		}
		if rest == "" {
			return append(all, e), nil
		}
		if rest[0] == ',' {
			all, e = append(all, e), element{}
		}
		text = rest[1:]
	}
}

// cutValue reads a value, up to the separator that follows, which rest begins with; rest is empty
// at the end.
func cutValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ",;")
		if end < 0 {
			end = len(text)
		}
		if value = text[:end]; strings.Contains(value, `"`) {
			return "", "", errors.New("a quote is within a value")
		}
		return strings.TrimSpace(value), text[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			if text[i] != '"' && text[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		case text[i] == '"':
			if rest = strings.TrimLeft(text[i+1:], " "); rest != "" && rest[0] != ',' && rest[0] != ';' {
				return "", "", errors.New("text follows a closing quote")
			}
			return b.String(), rest, nil
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", errors.New("a quote is not closed")
}

// commonName returns the CN of a distinguished name, as RFC 2253 writes it (CN=a,O=b), or OpenSSL
// once did (/O=b/CN=a); empty if there is none.
func commonName(subject string) string {
	separators := ",+"
	if strings.HasPrefix(subject, "/") {
		separators, subject = "/", subject[1:]
	}
	for _, part := range splitEscaped(subject, separators) {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "CN") {
			return unescape(strings.TrimSpace(value))
		}
	}
	return ""
}

// splitEscaped splits at separators that no backslash stands before.
func splitEscaped(text, separators string) (parts []string) {
	begin := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.IndexByte(separators, text[i]) >= 0:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// unescape takes backslashes away that stand before a character that is meant itself.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
