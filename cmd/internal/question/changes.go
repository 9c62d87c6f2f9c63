package question

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Changes is what proxies had at one revision and not at another, field by field.
type Changes struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Compared is how many proxies were; Came and Left are how many were there at one of the
	// revisions alone.
	Compared int `json:"compared"`
	Came     int `json:"came,omitempty"`
	Left     int `json:"left,omitempty"`
	// Resources are those that differ, More is how many are left out.
	Resources []Changed `json:"resources"`
	More      int       `json:"more,omitempty"`
}

// Changed is a resource that differs.
type Changed struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// What is added, removed or changed.
	What string `json:"what"`
	// Proxies is how many differ so; Proxy is one of them.
	Proxies int    `json:"proxies"`
	Proxy   string `json:"proxy,omitempty"`
	// Fields are those that differ of one that is changed, More is how many are left out.
	Fields []Field `json:"fields,omitempty"`
	More   int     `json:"more,omitempty"`
}

// Field is one that differs: its values as JSON, long ones cut; empty: it is not set.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// ChangesPath and ChangesAbout are those of the page.
const (
	ChangesPath  = "/debug/changes"
	ChangesAbout = "?from=REVISION&to=REVISION[&proxyID=NODE&type=TYPE&name=NAME]: what proxies had at one revision and not at another, field by field, " +
		"as `coxswain diff` says it"
)

// What is shown at most: resources, fields of each, and bytes of a value.
const (
	mostResources = 200
	mostFields    = 100
	mostValue     = 2000
)

// ChangesPage answers what proxies had at one revision and not at another. Of secrets it says that
// they differ, not what they are.
func ChangesPage(of admin.Source) admin.Page {
	return admin.Page{Path: ChangesPath, About: ChangesAbout, Serve: func(w http.ResponseWriter, r *http.Request) {
		args := r.URL.Query()
		from, errFrom := strconv.ParseUint(args.Get("from"), 10, 64)
		to, errTo := strconv.ParseUint(args.Get("to"), 10, 64)
		if errFrom != nil || errTo != nil {
			http.Error(w, "say which revisions: "+ChangesPath+"?from=REVISION&to=REVISION (/debug/history lists those that are kept)", http.StatusBadRequest)
			return
		}
		d, err := of.Diff(from, to, args.Get("proxyID"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		write(w, changes(&d, args))
	}}
}

func changes(d *admin.Difference, args url.Values) *Changes {
	out := &Changes{From: d.From, To: d.To, Compared: d.Compared, Came: len(d.Came), Left: len(d.Left), Resources: []Changed{}}
	typeURL, name := args.Get("type"), args.Get("name")
	for i := range d.Resources {
		r := &d.Resources[i]
		if typeURL != "" && r.Type != typeURL && r.Type != admin.TypeURL(typeURL) || name != "" && r.Name != name {
			continue
		}
		if len(out.Resources) == mostResources {
			out.More++
			continue
		}
		out.Resources = append(out.Resources, changed(r))
	}
	return out
}

func changed(r *admin.DifferentBody) Changed {
	c := Changed{Type: r.Type, Name: r.Name, Proxies: len(r.Proxies)}
	if len(r.Proxies) > 0 {
		c.Proxy = r.Proxies[0]
	}
	var fields []plan.Change
	switch {
	case r.Before == "":
		c.What = "added"
	case r.After == "":
		c.What = "removed"
	case r.Withheld:
		c.What, fields = "changed", plan.Withheld()
	default:
		c.What, fields = "changed", plan.Compared(r.Type, r.BeforeValue, r.AfterValue)
	}
	for i, f := range fields {
		if i == mostFields {
			c.More = len(fields) - i
			break
		}
		c.Fields = append(c.Fields, Field{f.Path, cut(f.Before), cut(f.After)})
	}
	return c
}

// cut is JSON on a line, or how it begins and how long it is.
func cut(text json.RawMessage) string {
	if len(text) <= mostValue {
		return string(text)
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:mostValue], len(text))
}
