package static

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// everyone is the one view of each type.
const everyone = "files"

// generator serves rows of table `static`; it is also the source of these rows.
type generator struct {
	config  Config
	offered map[string]bool
	more    []sdk.Type
	// rows was indexed as byType: by type and name.
	rows   *state.Table
	byType map[string]map[string]*sdk.Row
}

func newGenerator(c Config) *generator {
	g := &generator{config: c}
	g.offered, g.more = offered(types(c.scan(func(string) {}).Files))
	return g
}

// Offers is a sdk.Offerer's.
func (g *generator) Offers() []sdk.Type { return g.more }

// Place puts all proxies into the same views: the entry's `select` has chosen them.
func (g *generator) Place(_ *state.State, p *sdk.Proxy) (map[string]string, error) {
	views := make(map[string]string, len(p.Types))
	for _, t := range p.Types {
		views[t] = everyone
	}
	return views, nil
}

// Generate returns resources as the files hold them.
func (g *generator) Generate(s *state.State, typeURL, _ string, names []string) ([]sdk.Resource, error) {
	g.index(s.Table(table))
	rows := g.byType[typeURL]
	if names == nil {
		names = slices.Sorted(maps.Keys(rows))
	}
	var out []sdk.Resource
	for _, n := range names {
		if r := rows[n]; r != nil {
			out = append(out, sdk.Resource{Name: n, Body: body(r)})
		}
	}
	return out, nil
}

// Explain is a sdk.Explainer's.
func (g *generator) Explain(typeURL string, _ uint64, name string) (rows, missing []state.Name, err error) {
	if r := g.byType[typeURL][name]; r != nil {
		rows = append(rows, state.Name{Table: table, Key: r.Key})
	}
	return rows, nil, nil
}

// body is never nil, since an empty message is a resource too.
func body(r *sdk.Row) []byte {
	if r.Payload == nil {
		return []byte{}
	}
	return r.Payload
}

// index sorts the rows of own files by type and name. Of two files with a resource of the same name
// the first by path counts.
func (g *generator) index(rows *state.Table) {
	if rows == g.rows {
		return
	}
	g.rows, g.byType = rows, map[string]map[string]*sdk.Row{}
	for _, r := range rows.All() {
		if !g.config.owns(r.Labels[fileLabel]) {
			continue
		}
		typeURL, name := r.Labels[typeLabel], r.Labels[nameLabel]
		if g.byType[typeURL] == nil {
			g.byType[typeURL] = map[string]*sdk.Row{}
		}
		if first := g.byType[typeURL][name]; first == nil || r.Labels[fileLabel] < first.Labels[fileLabel] {
			g.byType[typeURL][name] = r
		}
	}
}
