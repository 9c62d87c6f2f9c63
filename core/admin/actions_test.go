package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coxswain-mesh/coxswain/core/admin/login"
	"github.com/coxswain-mesh/coxswain/core/audit"
)

// desk is a monitoring port whose page changes things.
type desk struct {
	*httptest.Server
	logins *login.Logins
	// done is what was carried out, and by whom.
	done []string
}

func newDesk(t *testing.T, actions bool) *desk {
	t.Helper()
	d := &desk{}
	cfg := Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}
	if actions {
		d.logins = login.New()
		cfg.Actions = Actions{Logins: d.logins, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			d.done = append(d.done, audit.By(r.Context()).By+" "+r.Method+" "+r.URL.Path+" "+string(body))
			_, _ = io.WriteString(w, "{}")
		})}
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.Server = httptest.NewServer(s.Monitoring())
	t.Cleanup(d.Close)
	return d
}

// asked is a request of the page.
type asked struct {
	method, path, body, token string
	cookie                    *http.Cookie
	header                    map[string]string
	host                      string
}

func (d *desk) ask(t *testing.T, a asked) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.method, d.URL+a.path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", d.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if a.token != "" {
		r.Header.Set(TokenHeader, a.token)
	}
	if a.cookie != nil {
		r.AddCookie(a.cookie)
	}
	for name, value := range a.header {
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	r.Host = a.host
	resp, err := d.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func (d *desk) enter(t *testing.T) (*http.Cookie, string) {
	t.Helper()
	code, err := d.logins.Code(audit.Who{By: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	resp, text := d.ask(t, asked{method: "POST", path: "/ui/login", body: `{"code":"` + code + `"}`})
	var is session
	if err := json.Unmarshal([]byte(text), &is); err != nil || resp.StatusCode != 200 || is.Token == "" || len(resp.Cookies()) != 1 {
		t.Fatalf("%d %v %s %v", resp.StatusCode, err, text, resp.Cookies())
	}
	if again, text := d.ask(t, asked{method: "POST", path: "/ui/login", body: `{"code":"` + code + `"}`}); again.StatusCode != 401 {
		t.Errorf("the code counts twice: %d %s", again.StatusCode, text)
	}
	return resp.Cookies()[0], is.Token
}

// TestActions: who has logged in changes something, by name; everything else is refused: no login,
// half of one, another page's request, a name that leads here, a request that reads.
func TestActions(t *testing.T) {
	d := newDesk(t, true)
	cookie, token := d.enter(t)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ui/" || cookie.Secure || cookie.MaxAge <= 0 {
		t.Errorf("the cookie is %+v", cookie)
	}
	if _, port, _ := net.SplitHostPort(strings.TrimPrefix(d.URL, "http://")); cookie.Name != "coxswain-"+port {
		t.Errorf("the cookie is called %s", cookie.Name)
	}
	pin := asked{method: "POST", path: "/ui/do/pins", body: `{"revision":7}`, token: token, cookie: cookie}
	if resp, text := d.ask(t, pin); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	const want = `somebody POST /pins {"revision":7}`
	if len(d.done) != 1 || d.done[0] != want {
		t.Fatalf("done %q", d.done)
	}
	with := func(change func(*asked)) asked {
		a := pin
		a.header = map[string]string{}
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		asked
		code int
		says string
	}{
		"no cookie":       {with(func(a *asked) { a.cookie = nil }), 401, "coxswain ui"},
		"no token":        {with(func(a *asked) { a.token = "" }), 401, "coxswain ui"},
		"a guessed token": {with(func(a *asked) { a.token = "x" }), 401, "coxswain ui"},
		"another site": {
			with(func(a *asked) { a.header["Sec-Fetch-Site"] = "cross-site"; a.header["Origin"] = "http://evil.example" }),
			403, "another page",
		},
		"another port": {
			with(func(a *asked) { a.header["Sec-Fetch-Site"] = "same-site"; a.header["Origin"] = "http://127.0.0.1:1" }),
			403, "another page",
		},
		"an old browser":    {with(func(a *asked) { a.header["Sec-Fetch-Site"] = ""; a.header["Origin"] = "http://evil.example" }), 403, "another page"},
		"a sandboxed frame": {with(func(a *asked) { a.header["Sec-Fetch-Site"] = ""; a.header["Origin"] = "null" }), 403, "another page"},
		"a form":            {with(func(a *asked) { a.header["Content-Type"] = "application/x-www-form-urlencoded" }), 415, "application/json"},
		"a form of text":    {with(func(a *asked) { a.header["Content-Type"] = "text/plain" }), 415, "application/json"},
		"a name that leads here": {with(func(a *asked) {
			a.host = "evil.example"
			a.header["Origin"] = "http://evil.example"
		}), 403, "not as"},
		"a link":              {with(func(a *asked) { a.method = "GET" }), 405, "POST"},
		"a login by a link":   {asked{method: "GET", path: "/ui/login?code=x"}, 405, "POST"},
		"a code that is none": {asked{method: "POST", path: "/ui/login", body: `{"code":"x"}`}, 401, "does not count"},
		"no code":             {asked{method: "POST", path: "/ui/login", body: `x`}, 400, "code"},
		"a huge code":         {asked{method: "POST", path: "/ui/login", body: `{"code":"` + strings.Repeat("x", 1<<20) + `"}`}, 400, "code"},
	} {
		resp, text := d.ask(t, c.asked)
		if resp.StatusCode != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.200s", name, resp.StatusCode, text)
		}
	}
	if len(d.done) != 1 {
		t.Errorf("done %q", d.done)
	}
	_, text := d.ask(t, asked{method: "GET", path: "/ui/session", token: token, cookie: cookie})
	if !strings.Contains(text, `"by":"somebody"`) || strings.Contains(text, token) {
		t.Errorf("the session is %s", text)
	}
	resp, _ := d.ask(t, asked{method: "POST", path: "/ui/logout", body: "{}", token: token, cookie: cookie})
	if resp.StatusCode != 200 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", resp.StatusCode, resp.Cookies())
	}
	if resp, _ := d.ask(t, pin); resp.StatusCode != 401 {
		t.Errorf("after the login: %d", resp.StatusCode)
	}
}

// TestNoActions: where the page is for reading, nothing lets anybody in.
func TestNoActions(t *testing.T) {
	d := newDesk(t, false)
	for path, code := range map[string]int{"/ui/do/pins": 403, "/ui/login": 405} {
		if resp, text := d.ask(t, asked{method: "POST", path: path, body: "{}"}); resp.StatusCode != code {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	if _, text := d.ask(t, asked{method: "GET", path: "/ui/session"}); strings.TrimSpace(text) != `{"actions":false}` {
		t.Error(text)
	}
}

// TestActionsFromElsewhere: a login counts beside the right to see the page, not instead of it.
func TestActionsFromElsewhere(t *testing.T) {
	logins := login.New()
	s, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Naming: naming,
		Caller: func(_ context.Context, shown Shown) ([]string, error) {
			return []string{shown.Headers.Get("Authorization")}, nil
		},
		Actions: Actions{Logins: logins, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}})
	if err != nil {
		t.Fatal(err)
	}
	code, err := logins.Code(audit.Who{})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := logins.Enter(code)
	for by, want := range map[string]int{"": 401, "shop/web": 403, "operators/ann": 200} {
		r := httptest.NewRequest(http.MethodPost, "http://coxswain.example:15014/ui/do/pins", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(TokenHeader, e.Token)
		r.AddCookie(&http.Cookie{Name: "coxswain-", Value: e.Cookie})
		if by != "" {
			r.Header.Set("Authorization", by)
		}
		w := httptest.NewRecorder()
		if s.Monitoring().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d %s", by, w.Code, w.Body)
		}
	}
}
