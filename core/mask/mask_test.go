package mask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
)

const key = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nBAQEFAASCAUAwggE8AgEAAkEA\n-----END KEY-----"

func known() *Secrets {
	s := &Secrets{}
	s.Set("a", []string{"hunter2", "hunter2-and-more", `quo"ted\secret`, "p@ss word/1", key})
	return s
}

// What is secret is in no text, however it is written there.
func TestText(t *testing.T) {
	s := known()
	for in, want := range map[string]string{
		"password hunter2 refused":                         "password [secret] refused",
		"hunter2-and-more":                                 "[secret]",
		fmt.Sprintf("%q", `quo"ted\secret`):                `"[secret]"`,
		"postgres://u:p%40ss+word%2F1@h":                   "postgres://u:[secret]@h",
		"postgres://u:p@ss%20word%2F1@h":                   "postgres://u:[secret]@h",
		"Basic aHVudGVyMi1hbmQtbW9yZQ==":                   "Basic [secret]==",
		"line MIIBVgIBADANBgkqhkiG9w0 of a key":            "line [secret] of a key",
		"-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nBA": "-----BEGIN KEY-----\n[secret]\nBA",
		"nothing": "nothing",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
	var none *Secrets
	if none.Text("a") != "a" {
		t.Error("nobody's secrets change a text")
	}
}

// A plugin's newest secrets are known, and for a time those before.
func TestSet(t *testing.T) {
	s := &Secrets{}
	for i := range 5 {
		s.Set("a", []string{fmt.Sprintf("secret-%d", i)})
		s.Set("a", []string{fmt.Sprintf("secret-%d", i)})
	}
	if got := s.Text("secret-0 secret-1 secret-2 secret-3 secret-4"); got != "secret-0 secret-1 [secret] [secret] [secret]" {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	text, err := known().JSON(map[string]any{"why": `it says "hunter2"`, "n": 1234567890123456789, "list": []string{"a", `quo"ted\secret`}, "b": true})
	if err != nil || string(text) != `{"b":true,"list":["a","[secret]"],"n":1234567890123456789,"why":"it says \"[secret]\""}` || !json.Valid(text) {
		t.Errorf("%s %v", text, err)
	}
	var none *Secrets
	if text, err := none.JSON("hunter2"); err != nil || string(text) != `"hunter2"` {
		t.Errorf("where nothing is secret: %s %v", text, err)
	}
}

func TestHandler(t *testing.T) {
	for name, make := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		log := slog.New(known().Handler(make(&b)))
		log.With("with", "hunter2").WithGroup("group").Info("hunter2", "string", "a hunter2", "error", fmt.Errorf("no: %w", errors.New("hunter2")),
			"list", []string{"hunter2"}, slog.Group("in", "of", "hunter2"), "struct", struct{ A string }{"hunter2"}, "hunter2", 1, "n", 42)
		if text := b.String(); strings.Contains(text, "hunter2") || strings.Count(text, Word) != 8 || !strings.Contains(text, "42") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestError(t *testing.T) {
	err := known().Error(fmt.Errorf("hunter2: %w", fs.ErrNotExist))
	if err.Error() != "[secret]: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
