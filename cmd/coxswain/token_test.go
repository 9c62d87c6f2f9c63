package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokenCreate: the token alone is on standard output, and stands in no file; what is missing is
// said.
func TestTokenCreate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	call := func(args ...string) (int, string, string) {
		t.Helper()
		var out, errOut bytes.Buffer
		code := run(t.Context(), append([]string{"token", "create"}, args...), nil, strings.NewReader(""), &out, &errOut)
		return code, out.String(), errOut.String()
	}
	code, out, said := call("--file", file, "--namespace", "shop", "--service-account", "web", "--trust-domain", "corp.example", "--ttl", "1h")
	made := strings.TrimSuffix(out, "\n")
	if code != 0 || len(made) != 43 || strings.ContainsAny(made, " \n") ||
		!strings.Contains(said, "spiffe://corp.example/ns/shop/sa/web") || !strings.Contains(said, "it expires at ") {
		t.Errorf("%d %q %q", code, out, said)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), made) || !strings.Contains(string(text), "expires: ") ||
		!strings.Contains(string(text), "spiffe://corp.example/ns/shop/sa/web") {
		t.Errorf("%v: %s", err, text)
	}
	for _, args := range [][]string{
		{}, {"--file", file}, {"--file", file, "--namespace", "shop"}, {"--namespace", "shop", "--service-account", "web"},
		{"--file", file, "--namespace", "a/sa/b", "--service-account", "web"},
		{"--file", file, "--namespace", "shop", "--service-account", "web", "--ttl", "-1h"},
	} {
		if code, out, said := call(args...); code == 0 || out != "" || said == "" {
			t.Errorf("%v: %d %q %q", args, code, out, said)
		}
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
		t.Errorf("mistakes have changed the file: %s (%v)", now, err)
	}
}
