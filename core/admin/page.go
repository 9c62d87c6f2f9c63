package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Page is a debug page.
type Page struct {
	// Path begins with /debug/. About is what lists say of it; empty: it is on none.
	Path, About string
	// Own: callers of other namespaces than the operators' may ask for proxies of their own. Such a
	// page shows what ?proxyID= names, which is the id of a whole node when Serve is called.
	Own   bool
	Serve http.HandlerFunc
}

// ownPage is the one page of the core's own that shows what a proxy is to have.
const ownPage = "/debug/config_dump"

// all are the debug pages: the core's own, and those that the Config adds.
func (s *Server) all() []Page {
	var all []Page
	for _, p := range s.pages() {
		all = append(all, Page{Path: p.path, About: p.about, Own: p.path == ownPage, Serve: p.serve})
	}
	return append(all, s.cfg.Pages...)
}

// listed are those of pages that lists name.
func listed(all []Page) []Page {
	return slices.DeleteFunc(slices.Clone(all), func(p Page) bool { return p.About == "" })
}

// asker is who asks for a page.
type asker struct {
	system     bool
	namespaces []string
}

// sees reports whether it may see a namespace's proxies.
func (c asker) sees(namespace string) bool {
	return c.system || slices.Contains(c.namespaces, namespace)
}

type askerKey struct{}

// guarded returns what serves a page on a port.
func (cfg *Config) guarded(p Page, g *gate) http.Handler {
	return g.debug(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(askerKey{}).(asker)
		cfg.show(p, who, w, r)
	}))
}

func asking(r *http.Request, who asker) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), askerKey{}, who))
}

// show answers with a page for somebody who may ask for it. ?proxyID= may name a proxy as people
// do.
func (cfg *Config) show(p Page, who asker, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	id := query.Get("proxyID")
	node, ok := cfg.node(who, id)
	switch {
	case p.Own && id == "":
		http.Error(w, "say which proxy: ?proxyID=NODE (/debug/streams lists those that are connected)", http.StatusBadRequest)
		return
	case p.Own && !ok && !who.system:
		http.Error(w, notConnected(id), http.StatusNotFound)
		return
	case ok && node != id:
		query.Set("proxyID", node)
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	p.Serve(w, r)
}

// node is the id of the connected node that a text means; ok is false where there is none that the
// asker may see.
func (cfg *Config) node(who asker, text string) (id string, ok bool) {
	if text == "" {
		return "", false
	}
	short := cfg.Naming.Short
	for _, st := range cfg.Source.Streamed() {
		if (st.Node == text || short != nil && short(st.Client) == text) && (who.system || who.sees(cfg.Naming.NamespaceOf(st.Client))) {
			return st.Node, true
		}
	}
	return "", false
}

// list returns the page that says which pages there are, by their names below /debug/.
func list(all []Page) Page {
	names := []string{}
	for _, p := range listed(all) {
		names = append(names, strings.TrimPrefix(p.Path, "/debug/"))
	}
	slices.Sort(names)
	return Page{Path: "/debug/list", Serve: func(w http.ResponseWriter, _ *http.Request) { write(w, names) }}
}
