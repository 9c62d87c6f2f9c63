package jwks

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// issuer is a server that publishes keys.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string
	asked map[string]int
}

func serve(t *testing.T, start func(http.Handler) *httptest.Server) *issuer {
	i := &issuer{pages: map[string]string{}, asked: map[string]int{}}
	i.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked[r.URL.Path]++
		page, ok := i.pages[r.URL.Path]
		if !ok {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) page(path, text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pages[path] = text; text == "" {
		delete(i.pages, path)
	}
}

func (i *issuer) times(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

func rule(t *testing.T, name string, rules ...*security.JWTRule) *sdk.Row {
	t.Helper()
	b, err := kinds.Encode(&security.RequestAuthentication{JwtRules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return &sdk.Row{Key: "default/" + name, Payload: b}
}

const one, two = `{"keys":[{"kid":"1","kty":"oct","k":"YQ"}]}`, `{"keys":[{"kid":"2","kty":"oct","k":"YQ"}]}`

func has(key, keys string) func(map[string]*sdk.Row) bool {
	return func(rows map[string]*sdk.Row) bool { return rows[key] != nil && string(rows[key].Payload) == keys }
}

func TestKeysAreFetchedAndRotated(t *testing.T) {
	i := serve(t, httptest.NewServer)
	i.page("/keys", one)
	h := plugintest.Start(t, Plugin(), `{"refresh": "10ms", "retry": "5ms", "maxRetry": "10ms"}`)
	h.WaitSynced()
	uri := i.URL + "/keys"
	h.Update(kinds.RequestAuthentication, []*sdk.Row{rule(t, "a",
		&security.JWTRule{Issuer: "x", JwksUri: uri}, &security.JWTRule{Issuer: "inline", Jwks: one})})
	h.WaitRows(Table, has(uri, one))
	i.page("/keys", two)
	h.WaitRows(Table, has(uri, two))
	// A server that is away, or says something else, leaves the keys as they are.
	i.page("/keys", "")
	before := i.times("/keys")
	h.WaitLog(func(l sdk.Level, text string, fields map[string]string) bool {
		return l == sdk.Warn && fields["set"] == uri && strings.Contains(fields["error"], "503")
	})
	i.page("/keys", "<html>")
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "no key set")
	})
	if i.times("/keys") == before || !has(uri, two)(h.Rows(Table)) {
		t.Error("the last good keys stay")
	}
	i.page("/keys", one)
	h.WaitRows(Table, has(uri, one))
	if n := len(h.Rows(Table)); n != 1 {
		t.Errorf("%d key sets, want the one that is not inline", n)
	}
	h.Update(kinds.RequestAuthentication, nil, "default/a")
	h.WaitRows(Table, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

func TestIssuersSayWhereTheirKeysAre(t *testing.T) {
	i := serve(t, httptest.NewTLSServer)
	i.page("/realm/.well-known/openid-configuration", `{"issuer": "x", "jwks_uri": "`+i.URL+`/k"}`)
	i.page("/k", one)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), map[string]any{"caFile": ca})
	name := i.URL + "/realm/"
	h.Update(kinds.RequestAuthentication, []*sdk.Row{rule(t, "a", &security.JWTRule{Issuer: name})})
	h.WaitRows(Table, has(name, one))
}

func TestWhatIsNotTaken(t *testing.T) {
	i := serve(t, httptest.NewServer)
	i.page("/large", `{"keys":[`+strings.Repeat(" ", 100)+`]}`)
	i.page("/list", `[]`)
	i.page("/none/.well-known/openid-configuration", `{}`)
	for _, c := range []struct {
		name, config string
		rule         *security.JWTRule
		want         string
	}{
		{"too large", `{"maxBytes": 50}`, &security.JWTRule{JwksUri: i.URL + "/large"}, "larger than the limit of 50 bytes"},
		{"no key set", `{}`, &security.JWTRule{JwksUri: i.URL + "/list"}, "no key set"},
		{"nothing discovered", `{}`, &security.JWTRule{Issuer: i.URL + "/none"}, "no jwks_uri"},
		{"no URL", `{}`, &security.JWTRule{Issuer: "me@example.com"}, "no URL of HTTP"},
		{"another scheme", `{}`, &security.JWTRule{JwksUri: "file:///etc/passwd"}, "no URL of HTTP"},
		{"an address of the link", `{}`, &security.JWTRule{JwksUri: "http://169.254.169.254/"}, "allowLinkLocal"},
		{"a blocked address", `{"blockedCIDRs": ["127.0.0.0/8"]}`, &security.JWTRule{JwksUri: i.URL + "/list"}, "blockedCIDRs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plugintest.Start(t, Plugin(), c.config)
			h.Update(kinds.RequestAuthentication, []*sdk.Row{rule(t, "a", c.rule)})
			h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
				return strings.Contains(fields["error"], c.want)
			})
			if len(h.Rows(Table)) > 0 {
				t.Error("it was published")
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for field, config := range map[string]string{
		"refresh": `{"refresh": "0s"}`, "timeout": `{"timeout": "x"}`, "concurrent": `{"concurrent": 0}`, "maxBytes": `{"maxBytes": 0}`,
		"maxTimeout": `{"maxTimeout": "0s"}`, "maxPerNamespace": `{"maxPerNamespace": 0}`, "concurrentPerNamespace": `{"concurrentPerNamespace": 0}`,
		"blockedCIDRs[1]": `{"blockedCIDRs": ["10.0.0.0/8", "x"]}`, "retyr": `{"retyr": "1s"}`,
	} {
		if got, _ := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q", config, got)
		}
	}
}

// What would be more than a row may hold, or than rules may ask for, is refused.
func TestBoundsOfTheConfig(t *testing.T) {
	for field, config := range map[string]string{"maxBytes": `{"maxBytes": 1048576}`, "timeout": `{"timeout": "30s"}`} {
		if got, _ := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q", config, got)
		}
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	plugintest.Start(t, Plugin(), config)
	rows := kinds.Read("rule", []byte(blocks[1].Text))
	if len(rows) != 1 || rows[0].Row == nil || rows[0].Table != kinds.RequestAuthentication {
		t.Errorf("rows %v", rows)
	}
}
