package bugreport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pages are those of a control plane with two proxies.
func pages(_ context.Context, path string) ([]byte, error) {
	explained := `[{"node":"a","type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"c","plugin":"istio","version":"1","rows":[{"table":"services","key":"ns/s","revision":3}]}]`
	text, ok := map[string]string{
		"/debug/list":    `["plugins","ledger","tables","explain","impact","syncz"]`,
		"/debug/version": "v1",
		"/ready":         "ready",
		"/debug/ledger":  `[{"node":"a"},{"node":"b"}]`, "/debug/plugins": `[]`,
		"/debug/tables":                        `[{"name":"services"},{"name":"example.com/Note"},{"name":"/Secret","secret":true},{"name":"mesh"}]`,
		"/debug/rowz?table=example.com%2FNote": `[{"key":"shop/n"}]`, "/debug/rowz?table=mesh": `[]`,
		"/debug/rowz?table=%2FSecret":          `never asked`,
		"/debug/ledger?proxyID=a":              `[]`,
		"/debug/explain?proxyID=a":             `{}`,
		"/debug/explain?proxyID=a&all=true":    explained,
		"/debug/config_dump?proxyID=a":         `{"configs":[]}`,
		"/debug/config_dump?proxyID=b&types=x": `never asked`,
	}[path]
	if !ok {
		return nil, errors.New("no such page")
	}
	return []byte(text), nil
}

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.zip")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	index, err := Collect(t.Context(), pages, f, Options{Version: "v1", From: "here", Proxies: 1})
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if len(index.Left) != 1 || index.Left[0] != "b" || index.Missing["/debug/metrics"] == "" {
		t.Errorf("%+v", index)
	}
	r, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for page, want := range map[string]string{
		"/debug/version": "v1",
		"/debug/explain?proxyID=a&type=cds&name=c": `"revision":3`,
		"/debug/explain?proxyID=a&type=cds&name=d": `had no cds "d"`,
		"/debug/explain?proxyID=b&type=cds&name=c": "--proxies",
		"/debug/explain?proxyID=x&type=cds&name=c": "it has a",
		"/debug/impact?row=service/ns/s":           `"name":"c"`,
		"/debug/impact?row=service/ns/t":           `"resources":[]`,
		"/debug/impact?row=nothing/ns/t":           "no table has rows of kind",
		"/debug/config_dump?proxyID=a&types=lds":   `"configs"`,
		"/debug/metrics":                           "no such page",
		"/debug/nothing":                           "the archive has no /debug/nothing",
		"/debug/rowz?table=example.com%2FNote":     "shop/n",
		"/debug/rowz?table=mesh":                   "[]",
		"/debug/rowz?table=%2FSecret":              "the archive has no",
	} {
		text, err := r.Get(page)
		if got := string(text); err == nil && !strings.Contains(got, want) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v", page, got, err)
		}
	}
}

// TestNoReport: what is no archive is said to be none.
func TestNoReport(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "hello", "empty": "", "cut": "PK\x03\x04 and no more"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Collect(t.Context(), func(context.Context, string) ([]byte, error) { return []byte("x"), nil }, &strings.Builder{}, Options{}); err == nil || !strings.Contains(err.Error(), "of this version") {
		t.Error(err)
	}
}
