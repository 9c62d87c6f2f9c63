package admin

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin/login"
	"github.com/coxswain-mesh/coxswain/core/audit"
)

// Actions are what may be changed from the page.
type Actions struct {
	// Logins knows who has logged in; nil: the page changes nothing.
	Logins *login.Logins
	// Handler carries out what they ask for, by whom audit's context says.
	Handler http.Handler
}

// TokenHeader has the token of a login, which the page knows and no other.
const TokenHeader = "X-Coxswain-Token" // #nosec G101 -- a header's name

// mostCode is how large the body of a login may be.
const mostCode = 4 << 10

// session is what the page is told of its login: Actions reports whether it may change anything at
// all, By is who has logged in.
type session struct {
	Actions bool   `json:"actions"`
	By      string `json:"by,omitempty"`
	// Token is told at the login alone.
	Token string `json:"token,omitempty"`
}

// act adds what changes something to the pages below ui.
func (s *Server) act(mux *http.ServeMux, ui string) {
	l := s.cfg.Actions.Logins
	mux.Handle(ui+"session", s.gate.follow(Page{Path: ui + "session", Own: true}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		is := session{Actions: l != nil}
		if who, ok := s.loggedIn(r); ok {
			is.By = who.String()
		}
		tell(w, is)
	}))
	if l == nil {
		mux.Handle(ui+"do/", s.gate.access.noted(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the page changes nothing here: the control plane runs without --uiActions", http.StatusForbidden)
		})))
		return
	}
	mux.Handle(ui+"login", s.gate.change(Page{Path: ui + "login"}, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Code string `json:"code"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostCode)).Decode(&in); err != nil {
			http.Error(w, "a login is {\"code\": CODE}", http.StatusBadRequest)
			return
		}
		e, ok := l.Enter(in.Code)
		if !ok {
			http.Error(w, "the code does not count: it was used, or is older than a minute; coxswain ui makes another", http.StatusUnauthorized)
			return
		}
		s.cfg.Log.Info("somebody logged in on the page", "by", e.Who.String(), "remote", r.RemoteAddr)
		http.SetCookie(w, cookie(r, ui, e.Cookie, int(e.Lasts.Seconds())))
		tell(w, session{Actions: true, By: e.Who.String(), Token: e.Token})
	}))
	mux.Handle(ui+"logout", s.gate.change(Page{Path: ui + "logout"}, func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(cookieName(r)); err == nil {
			l.Leave(c.Value)
		}
		http.SetCookie(w, cookie(r, ui, "", -1))
		tell(w, session{Actions: true})
	}))
	do := http.StripPrefix(strings.TrimSuffix(ui, "/")+"/do", s.cfg.Actions.Handler)
	mux.Handle(ui+"do/", s.gate.change(Page{Path: ui + "do"}, func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.loggedIn(r)
		if !ok {
			http.Error(w, "log in first: coxswain ui prints an address that does", http.StatusUnauthorized)
			return
		}
		do.ServeHTTP(w, r.WithContext(audit.With(r.Context(), who)))
	}))
}

// change wraps what changes something: for those who may see the page, from the page itself, by
// POST or DELETE with JSON, which no form of another page can send.
func (g *gate) change(p Page, h http.HandlerFunc) http.Handler {
	same := http.NewCrossOriginProtection() // by Sec-Fetch-Site and Origin
	return g.access.noted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost && r.Method != http.MethodDelete:
			w.Header().Set("Allow", "POST, DELETE")
			http.Error(w, "what changes something is asked for by POST or DELETE", http.StatusMethodNotAllowed)
			return
		case same.Check(r) != nil:
			http.Error(w, "another page asked for it", http.StatusForbidden)
			return
		case r.Header.Get("Content-Type") != "application/json":
			http.Error(w, "Content-Type is application/json", http.StatusUnsupportedMediaType)
			return
		}
		who, ok := g.admit(p, w, r)
		if !ok {
			return
		}
		h.ServeHTTP(w, asking(r, who))
	}))
}

// loggedIn returns who has logged in.
func (s *Server) loggedIn(r *http.Request) (audit.Who, bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil || s.cfg.Actions.Logins == nil {
		return audit.Who{}, false
	}
	return s.cfg.Actions.Logins.Who(c.Value, r.Header.Get(TokenHeader))
}

// cookieName differs by port: browsers send cookies to all ports of a host.
func cookieName(r *http.Request) string {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	port := ""
	if at != nil {
		_, port, _ = net.SplitHostPort(at.String())
	}
	return "coxswain-" + port
}

func cookie(r *http.Request, path, value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: value, Path: path, MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

func tell(w http.ResponseWriter, is session) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(is)
}
