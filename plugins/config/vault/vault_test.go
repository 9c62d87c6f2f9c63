package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// example is the secret that the README shows.
func example(t *testing.T) (values map[string]any, row string, config []byte) {
	t.Helper()
	blocks, config := readme.Example(t, 3)
	for _, b := range blocks[1:] {
		switch b.Name() {
		case "secret":
			if err := json.Unmarshal([]byte(b.Text), &values); err != nil {
				t.Fatal(err)
			}
		case "rows":
			row = b.Text
		}
	}
	return values, row, config
}

// TestReadme: the example's config is right, and what Vault shows of the secret makes the row.
func TestReadme(t *testing.T) {
	values, want, config := example(t)
	c := defaults()
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	f := found{values: map[string][]byte{}}
	for key, value := range values {
		f.values[key] = []byte(value.(string))
	}
	p := &publication{config: c}
	d := p.document("edge/shop", f)
	if len(d.Faults) > 0 || d.Row == nil {
		t.Fatalf("it is %+v", d)
	}
	if got := secrets.SecretTable + " " + d.Row.Key + " " + d.Row.Source + "\n"; got != want {
		t.Errorf("rows: %q, want %q", got, want)
	}
	content, err := secrets.Decode(d.Row)
	if err != nil || len(content.Data) != 1 {
		t.Errorf("its values are %v, %v", content.Data, err)
	}
}

func TestConfig(t *testing.T) {
	for config, want := range map[string]string{
		`{"address": "https://vault:8200"}`: "tokenFile",
		`{"address": "https://vault:8200", "tokenFile": "t", "appRole": {"roleID": "r", "secretIDFile": "s"}}`: "tokenFile",
		`{"address": "http://vault:8200", "tokenFile": "t"}`:                                                   "plain text",
		`{"address": "https://u:p@vault:8200", "tokenFile": "t"}`:                                              "address",
		`{"address": "https://vault:8200/v1/secret", "tokenFile": "t"}`:                                        "address",
		`{"address": "https://vault:8200", "tokenFile": "t", "path": "../sys"}`:                                "path",
		`{"address": "https://vault:8200", "tokenFile": "t", "path": "a?list=true"}`:                           "path",
		`{"address": "https://vault:8200", "tokenFile": "t", "mount": ""}`:                                     "mount",
		`{"address": "https://vault:8200", "tokenFile": "t", "namespace": "a/b"}`:                              "namespace",
		`{"address": "https://vault:8200", "tokenFile": "t", "tls": {"cert": "c"}}`:                            "tls.cert",
		`{"address": "http://127.0.0.1:8200", "tokenFile": "t", "interval": "1ms"}`:                            "interval",
		`{"address": "http://127.0.0.1:8200", "tokenFile": "t", "limits": {"secrets": 0}}`:                     "secrets",
	} {
		if err := sdk.Check(Plugin(), []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", config, err, want)
		}
	}
	for _, config := range []string{
		`{"address": "http://[::1]:8200", "tokenFile": "t"}`,
		`{"address": "http://localhost:8200", "tokenFile": "t", "path": "/mesh/"}`,
	} {
		if err := sdk.Check(Plugin(), []byte(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// store answers as a store with the example's secret does, until it is told to do something else:
// what a Vault would never do.
type store struct {
	values map[string]any
	abuse  atomic.Value // func(http.ResponseWriter, *http.Request)
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if abuse, _ := s.abuse.Load().(func(http.ResponseWriter, *http.Request)); abuse != nil {
		abuse(w, r)
		return
	}
	answer := func(data map[string]any) { _ = json.NewEncoder(w).Encode(map[string]any{"data": data}) }
	switch {
	case r.Header.Get("X-Vault-Token") != "root":
		http.Error(w, `{"errors": ["permission denied"]}`, http.StatusForbidden)
	case r.URL.Path == "/v1/secret/metadata":
		answer(map[string]any{"keys": []string{"edge/", "stray"}})
	case r.URL.Path == "/v1/secret/metadata/edge":
		answer(map[string]any{"keys": []string{"deeper/", "shop"}})
	case r.URL.Path == "/v1/secret/data/edge/shop":
		answer(map[string]any{"data": s.values, "metadata": map[string]any{"version": 1, "created_time": "2026-01-01T00:00:00Z"}})
	default:
		http.Error(w, `{"errors": []}`, http.StatusNotFound)
	}
}

// TestAbuse: whatever the server answers, or doesn't, what was read last stays, it is said, and it
// is over when the server is right again.
func TestAbuse(t *testing.T) {
	values, _, _ := example(t)
	s := &store{values: values}
	server := httptest.NewServer(s)
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(),
		fmt.Sprintf(`{"address": %q, "tokenFile": %q, "interval": "1s", "timeout": "300ms", "limits": {"bytes": 65536}}`, server.URL, token))
	h.WaitSynced()
	there := func() bool { return h.Rows(secrets.SecretTable)["edge/shop"] != nil }
	if !there() || len(h.Rows(secrets.SecretTable)) != 1 {
		t.Fatalf("rows: %v", h.Rows(secrets.SecretTable))
	}
	faulty := func(text string) {
		t.Helper()
		h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool {
			if text == "" {
				return len(rows) == 0
			}
			for _, row := range rows {
				if strings.Contains(string(row.Payload), text) {
					return true
				}
			}
			return false
		})
	}
	for _, c := range []struct {
		want string
		do   http.HandlerFunc
	}{
		{"larger than limits.bytes", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"data": "` + strings.Repeat("x", 1<<20)))
		}},
		{"the server says 503: Vault is sealed", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"errors": ["Vault is sealed"]}`, http.StatusServiceUnavailable)
		}},
		{"permission denied", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"errors": ["permission denied"]}`, http.StatusForbidden)
		}},
		{"can't be read", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no JSON\n\n\x00")) }},
		{"gives no list", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data": {"keys": "edge"}}`)) }},
		{"can't be read", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}},
		{"deadline exceeded", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"more than 1000 secrets", func(w http.ResponseWriter, r *http.Request) {
			keys := []string{"edge/"}
			if r.URL.Path != "/v1/secret/metadata" {
				keys = nil
				for i := range 1001 {
					keys = append(keys, fmt.Sprint(i))
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"keys": keys}})
		}},
	} {
		s.abuse.Store((func(http.ResponseWriter, *http.Request))(c.do))
		faulty(c.want)
		if !there() {
			t.Errorf("%s: what was read last is gone", c.want)
		}
		s.abuse.Store((func(http.ResponseWriter, *http.Request))(nil))
		faulty("")
	}
	for row := range h.Rows(secrets.SecretTable) {
		if row != "edge/shop" {
			t.Errorf("there is %s", row)
		}
	}
}

// TestAwayAtFirst: the first list waits for the server, however long.
func TestAwayAtFirst(t *testing.T) {
	values, _, _ := example(t)
	s := &store{values: values}
	s.abuse.Store(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusBadGateway) })
	server := httptest.NewServer(s)
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("root"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), fmt.Sprintf(`{"address": %q, "tokenFile": %q, "interval": "1s"}`, server.URL, token))
	h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 })
	s.abuse.Store((func(http.ResponseWriter, *http.Request))(nil))
	h.WaitSynced()
	h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

// TestDocuments: what a secret may be, and what is said of it.
func TestDocuments(t *testing.T) {
	p := &publication{config: Config{Mount: "kv", Namespace: "edge"}}
	for want, f := range map[string]found{
		"none of the values":    {values: map[string][]byte{"password": []byte("hunter2")}},
		"tls.crt":               {values: map[string][]byte{"tls.key": []byte("hunter2"), "tls.crt": []byte("hunter2")}},
		"needs read on kv/data": {err: errors.New("it needs read on kv/data/x")},
	} {
		d := p.document("x", f)
		if len(d.Faults) != 1 || !strings.Contains(d.Faults[0].Message, want) || strings.Contains(d.Faults[0].Message, "hunter2") || d.Namespace != "edge" {
			t.Errorf("%s: %+v", want, d)
		}
	}
}

// TestLimited: a body may end at its limit, and not beyond.
func TestLimited(t *testing.T) {
	for length, ok := range map[int]bool{9: true, 10: true, 11: false} {
		b := &limited{http.NoBody, 10}
		b.ReadCloser = readCloser{strings.NewReader(strings.Repeat("x", length))}
		n, err := 0, error(nil)
		for buf := make([]byte, 4); err == nil; {
			var some int
			some, err = b.Read(buf)
			n += some
		}
		if got := err.Error() == "EOF"; got != ok || n != min(length, 10) {
			t.Errorf("%d: %d bytes, %v", length, n, err)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
