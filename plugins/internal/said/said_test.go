package said

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// TestHide: a server that repeats what it was told tells nobody else.
func TestHide(t *testing.T) {
	const password = "pa ss/wörd"
	in := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	text := "no: " + password + ", pa+ss%2Fw%C3%B6rd, pa%20ss%2Fw%C3%B6rd, Basic " + in("mesh:"+password) + ", " + in(password)
	if got := Hide(text, "mesh:"+password, password); got != "no: [secret], [secret], [secret], Basic [secret], [secret]" {
		t.Error(got)
	}
	if got := Hide("a: b", "", ":"); got != "a: b" {
		t.Error(got)
	}
	if err := errors.New("as it is"); HideIn(err, "x") != err || HideIn(nil, "x") != nil {
		t.Error("an error without secrets is another one")
	}
	if got := HideIn(errors.New("it is x"), "x").Error(); got != "it is [secret]" {
		t.Error(got)
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\n\t b": "a b", "a\x1b[2J\x00b": "a?[2J?b", "\xffa": "?a", "": "", "ab": "ab",
		strings.Repeat("ä", 100): strings.Repeat("ä", 5) + "…", strings.Repeat(" ", 1000) + "a": "",
	} {
		if got := Line(text, 11); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
