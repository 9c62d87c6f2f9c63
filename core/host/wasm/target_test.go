package wasm

import "testing"

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		pattern, url string
		want         bool
	}{
		{"api.example.org", "https://api.example.org/x", true},
		{"api.example.org", "http://api.example.org:8080/x", true},
		{"api.example.org:80", "http://api.example.org:8080/x", false},
		{"*.example.org", "https://evil.example/.example.org", false},
		{"https://*.example.org/*", "https://evil.example/.example.org/x", false},
		{"https://api.example.org/v1/*", "https://API.example.org/v1/x?y=z", true},
		{"https://api.example.org/v1/*", "http://api.example.org/v1/x", false},
		{"https://api.example.org/v1/*", "https://api.example.org/v1/../admin", false},
		{"https://api.example.org/v1/*", "https://api.example.org/v1/%2e%2e/admin", false},
		{"https://api.example.org/v1/*", "https://api.example.org@evil.example/v1/x", false},
		{"*", "file:///etc/passwd", false},
		{"127.0.0.1:1", "http://127.0.0.1:1", true},
	} {
		target, err := parseTarget(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		u, err := checkURL(c.url)
		if got := err == nil && target.covers(u); got != c.want {
			t.Errorf("%s covers %s: %v", c.pattern, c.url, got)
		}
	}
	for _, bad := range []string{"", "ftp://x/", "a b", "user@host", "/path"} {
		if _, err := parseTarget(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
