// Package said has what a server said told to people: without secrets that the server was told, and
// as one printable line.
package said

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"unicode"
)

// hidden stands where a secret stood.
const hidden = "[secret]"

// Hide returns a text without secrets, as they are, as URLs write them, and in base64. Of a
// password USER:PASSWORD is one, too, as in the header Authorization, and comes first.
func Hide(text string, secrets ...string) string {
	for _, s := range secrets {
		if strings.Trim(s, ":") == "" {
			continue
		}
		for _, form := range []string{
			s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)),
		} {
			text = strings.ReplaceAll(text, form, hidden)
		}
	}
	return text
}

// HideIn returns an error whose text doesn't have the secrets; it is the same one where it had
// none.
func HideIn(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); Hide(text, secrets...) != text {
		return errors.New(Hide(text, secrets...))
	}
	return err
}

// Line makes one printable line of at most so many bytes.
func Line(text string, most int) string {
	const spaces = 16 // as many times more bytes are looked at, since spaces go
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), spaces*most)], "?")), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
