package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Page is a debug page.
type Page struct {
	// Path begins with /debug/. About is what lists say of it; empty: it is on none.
	Path, About string
	// Own: callers of other namespaces than the operators' may ask for proxies of their own. Such a
	// page shows what ?proxyID= names, which is the id of a whole node when Serve is called.
	Own bool
	// lists: without ?proxyID= it lists the proxies that who asks may see.
	lists bool
	Serve http.HandlerFunc
}

// ownPages are those of the core's own that callers of other namespaces may ask for proxies of
// their own; true: without ?proxyID= such a page lists the proxies that who asks may see.
var ownPages = map[string]bool{"/debug/config_dump": false, "/debug/explain": false, "/debug/ledger": true, "/debug/streams": true}

// all are the debug pages: the core's own, and those that the Config adds.
func (s *Server) all() []Page {
	var all []Page
	for _, p := range s.pages() {
		lists, own := ownPages[p.path]
		all = append(all, Page{Path: p.path, About: p.about, Own: own, lists: lists, Serve: p.serve})
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

// sees reports whether it may see a namespace's proxies. Those of none are for operators.
func (c asker) sees(namespace string) bool {
	return c.system || namespace != "" && slices.Contains(c.namespaces, namespace)
}

// narrow begins the names of scopes that are not everything.
const narrow = "namespaces "

// scope names what it may see: nothing stands for everything.
func (c asker) scope() string {
	if c.system {
		return ""
	}
	return narrow + strings.Join(slices.Compact(slices.Sorted(slices.Values(c.namespaces))), ",")
}

// ofScope is an asker that may see what a scope names.
func ofScope(scope string) asker {
	if scope == "" {
		return asker{system: true}
	}
	return asker{namespaces: strings.Split(strings.TrimPrefix(scope, narrow), ",")}
}

type askerKey struct{}

// askerOf is who asks, as asking has noted it.
func askerOf(r *http.Request) asker {
	who, _ := r.Context().Value(askerKey{}).(asker)
	return who
}

// guarded returns what serves a page on a port.
func (cfg *Config) guarded(p Page, g *gate) http.Handler {
	return g.debug(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cfg.show(p, askerOf(r), w, r)
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
	case p.Own && id == "" && !p.lists:
		http.Error(w, "say which proxy: ?proxyID=NODE (/debug/streams lists those that are connected)", http.StatusBadRequest)
		return
	case p.Own && id != "" && !ok && !who.system:
		http.Error(w, notConnected(id), http.StatusNotFound)
		return
	case ok && (node != id || len(query["proxyID"]) > 1):
		query.Set("proxyID", node)
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	p.Serve(w, asking(r, who))
}

// node is the id of the connected node that a text means; ok is false where there is none that the
// asker may see. Clients say their ids themselves: where others have said the same one, pages of it
// are not the asker's alone.
func (cfg *Config) node(who asker, text string) (id string, ok bool) {
	if text == "" {
		return "", false
	}
	all, short := cfg.Source.Streamed(), cfg.Naming.Short
	i := slices.IndexFunc(all, func(st xds.StreamStatus) bool {
		return (st.Node == text || short != nil && short(st.Client) == text) && cfg.shown(who, st)
	})
	if i < 0 {
		return "", false
	}
	id = all[i].Node
	return id, !slices.ContainsFunc(all, func(st xds.StreamStatus) bool { return st.Node == id && !cfg.shown(who, st) })
}

// shown reports whether somebody may see a stream.
func (cfg *Config) shown(who asker, st xds.StreamStatus) bool {
	return who.system || cfg.Naming.NamespaceOf != nil && who.sees(cfg.Naming.NamespaceOf(st.Client))
}

// seenBy returns what reports whether somebody may see a connection.
func (cfg *Config) seenBy(who asker) func(connection uint64) bool {
	if who.system {
		return func(uint64) bool { return true }
	}
	all := map[uint64]bool{}
	for _, st := range cfg.Source.Streamed() {
		all[st.Connection] = cfg.shown(who, st)
	}
	return func(connection uint64) bool { return all[connection] }
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
