package bugreport

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Report is an archive that is open.
type Report struct {
	Index
	zip *zip.ReadCloser
}

// mostPage is how large a page of an archive may be.
const mostPage = 1 << 30

// Open opens an archive; close it.
func Open(file string) (*Report, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; coxswain bug-report makes such archives", file, err)
	}
	r := &Report{zip: z}
	raw, err := r.read("index.json")
	if err == nil {
		err = json.Unmarshal(raw, &r.Index)
	}
	if err != nil {
		_ = z.Close()
		return nil, fmt.Errorf("%s: index.json: %w; coxswain bug-report makes such archives", file, err)
	}
	return r, nil
}

// Close closes the archive.
func (r *Report) Close() error { return r.zip.Close() }

func (r *Report) read(name string) ([]byte, error) {
	f, err := r.zip.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostPage+1))
	if err == nil && len(text) > mostPage {
		err = fmt.Errorf("it has more than %d bytes", mostPage)
	}
	return text, err
}

// Get returns a page as it was: one that is in the archive, an explanation of a resource, or what
// depends on a row, as far as there are explanations.
func (r *Report) Get(page string) ([]byte, error) {
	if name, ok := r.Pages[page]; ok {
		return r.read(name)
	}
	if why, ok := r.Missing[page]; ok {
		return nil, fmt.Errorf("the archive has no %s: %s", page, why)
	}
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	switch q := u.Query(); {
	case q.Get("proxyID") != "" && slices.Contains(r.Left, q.Get("proxyID")):
		return nil,
			fmt.Errorf("the archive has nothing of proxy %s: it was made of %d others (coxswain bug-report --proxies)", q.Get("proxyID"), len(r.explained()))
	case u.Path == "/debug/explain" && q.Get("name") != "":
		return r.explain(q.Get("proxyID"), q.Get("type"), q.Get("name"))
	case u.Path == "/debug/config_dump" && q.Get("types") != "":
		return r.Get("/debug/config_dump?proxyID=" + url.QueryEscape(q.Get("proxyID")))
	case u.Path == "/debug/impact":
		return r.impact(q.Get("row"))
	case u.Path == "/debug/pushes":
		return r.Get("/debug/pushes")
	}
	return nil, fmt.Errorf("the archive has no %s", page)
}

// explained are the proxies of which there are explanations, and their pages.
func (r *Report) explained() map[string]string {
	all := map[string]string{}
	for page := range r.Pages {
		if u, err := url.Parse(page); err == nil && u.Path == "/debug/explain" && u.Query().Get("all") != "" {
			all[u.Query().Get("proxyID")] = page
		}
	}
	return all
}

func (r *Report) explanations(page string) (all []admin.Explanation, err error) {
	raw, err := r.Get(page)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(raw, &all)
}

func (r *Report) explain(node, typeName, name string) ([]byte, error) {
	page, ok := r.explained()[node]
	if !ok {
		return nil, fmt.Errorf("the archive has no proxy %s; it has %s", node, strings.Join(slices.Sorted(maps.Keys(r.explained())), ", "))
	}
	all, err := r.explanations(page)
	if err != nil {
		return nil, err
	}
	typeURL := admin.TypeURL(typeName)
	for _, e := range all {
		if e.Type == typeURL && e.Name == name {
			return json.Marshal(e)
		}
	}
	return nil, fmt.Errorf("proxy %s had no %s %q", node, typeName, name)
}

// impact says what depends on a row, of the resources that the archive explains.
func (r *Report) impact(row string) ([]byte, error) {
	name, err := r.rowNamed(row)
	if err != nil {
		return nil, err
	}
	type resource struct{ typeURL, name, plugin string }
	found, proxies := map[resource]*admin.Affected{}, map[string]bool{}
	out := admin.Impact{Row: admin.Origin{RowName: name, Gone: true}, Resources: []admin.Affected{}}
	for node, page := range r.explained() {
		all, err := r.explanations(page)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			if out.Asked++; e.Unknown != "" {
				out.Unknown, out.Why = out.Unknown+1, e.Unknown
			}
			i := slices.IndexFunc(e.Rows, func(o admin.Origin) bool { return o.RowName == name })
			if i < 0 && !slices.Contains(e.Missing, name) {
				continue
			}
			if i >= 0 {
				out.Row = e.Rows[i]
			}
			at := resource{e.Type, e.Name, e.Plugin}
			if found[at] == nil {
				found[at] = &admin.Affected{Type: e.Type, Name: e.Name, Plugin: e.Plugin, Absent: e.Version == ""}
			}
			found[at].Proxies++
			proxies[node] = true
		}
	}
	for _, a := range found {
		out.Resources = append(out.Resources, *a)
	}
	slices.SortFunc(out.Resources, func(a, b admin.Affected) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	out.Proxies = append([]string{}, slices.Sorted(maps.Keys(proxies))...)
	return json.Marshal(out)
}

// rowNamed reads KIND/NAMESPACE/NAME by the tables that there were.
func (r *Report) rowNamed(text string) (admin.RowName, error) {
	raw, err := r.Get("/debug/tables")
	if err != nil {
		return admin.RowName{}, err
	}
	var tables []admin.Table
	if err := json.Unmarshal(raw, &tables); err != nil {
		return admin.RowName{}, err
	}
	return admin.RowNamed(tables, text, func(n admin.RowName) bool {
		raw, err := r.Get("/debug/rowz?table=" + url.QueryEscape(n.Table))
		var rows []admin.Row
		return err == nil && json.Unmarshal(raw, &rows) == nil && slices.ContainsFunc(rows, func(row admin.Row) bool { return row.Key == n.Key })
	})
}
