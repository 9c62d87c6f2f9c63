package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/spf13/cobra"
)

// resourceTypes are the types of resources that explain knows by a word.
var resourceTypes = map[string]string{
	"listener": "lds", "route": "rds", "cluster": "cds", "endpoint": "eds", "secret": "sds", "extension": "ecds",
}

// typeNamed is how the pages call a type: a word of ours, a short name such as cds, or a type URL.
func typeNamed(word string) string {
	singular := strings.TrimSuffix(strings.ToLower(word), "s")
	return cmp.Or(resourceTypes[singular], resourceTypes[strings.ToLower(word)], word)
}

func explainCommand(p *program) *cobra.Command {
	var a *asked
	var field string
	c := &cobra.Command{
		Use:   "explain PROXY [TYPE [NAME]]",
		Short: "Say why a proxy has a resource: the rows and plugins that it came from, and what was looked for in vain",
		Long: `Say why a proxy has a resource, or why it has none.

PROXY is the ID of a connected node, or NAME.NAMESPACE as it stands there. TYPE is listener, route, cluster, endpoint, secret or extension, a short
name such as cds, or a type URL. Without NAME the resources are listed; without TYPE, the views that the proxy is in, and what makes it so.

The rows are those that were read when the resource was made, as its generator has recorded it; nothing is computed anew. A row is shown with the
plugin that published it, the place that it came from, and the revision since which it is as it is. With --field the value that the resource has at
a path of its fields is shown, too, such as --field route_config.virtual_hosts[0].name, and where the objects that the resource was made from have the
same value. A generator doesn't say which of them a field comes from; a value that stands in none of them it made itself.`,
		Example: `  coxswain explain web-7d9.shop
  coxswain explain web-7d9.shop cluster
  coxswain explain web-7d9.shop route 8080
  coxswain explain web-7d9.shop cluster 'outbound|80||cart.shop.svc.cluster.local' --field outlier_detection -o wide`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 3 {
				return usageError{errors.New("coxswain explain wants PROXY [TYPE [NAME]], such as: coxswain explain web.shop cluster")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			node, err := connected(c.Context(), a.addr, args[0])
			if err != nil {
				return orElsewhere(c.Context(), p, err)
			}
			if len(args) < 3 {
				return a.explainProxy(c.Context(), node, args[1:])
			}
			return a.explainResource(c.Context(), node, typeNamed(args[1]), args[2], field)
		},
	}
	a = askedBy(p, c)
	c.Flags().StringVar(&field, "field", "", "path of a field whose value is shown, such as load_assignment.endpoints[0]")
	return c
}

func (a *asked) explainProxy(ctx context.Context, node string, of []string) error {
	var proxy admin.Proxy
	if err := a.page(ctx, "/debug/explain?proxyID="+url.QueryEscape(node), &proxy); err != nil {
		return err
	}
	if len(of) > 0 {
		want := typeNamed(of[0])
		i := slices.IndexFunc(proxy.Types, func(t report.ProxyType) bool { return show.IsType(t.Type, want) })
		if i < 0 {
			return fmt.Errorf("proxy %s asks for no %s", node, of[0])
		}
		proxy.Types = proxy.Types[i : i+1]
	}
	return a.print(proxy, func(w io.Writer, wide bool) {
		fmt.Fprintf(w, "proxy %s, connected for %s\n", node, show.Age(proxy.Since))
		if proxy.Pinned > 0 {
			fmt.Fprintf(w, "it is pinned to revision %d (%s)\n", proxy.Pinned, show.PinnedBy(proxy.Staged))
		}
		fmt.Fprintln(w)
		fmt.Fprintln(w, "TYPE\tPLUGIN\tRESOURCES\tVIEW\tPROXIES IN IT\tBECAUSE OF")
		for _, t := range proxy.Types {
			label, connections, facts := "-", 0, ""
			if t.View != nil {
				label, connections, facts = cmp.Or(t.View.Label, fmt.Sprint(t.View.ID)), t.View.Connections, show.Facts(t.View.Facts)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", show.LastWord(t.Type), cmp.Or(t.Plugin, "-"), len(t.Names), label, connections, cmp.Or(facts, "-"))
		}
		if len(of) == 0 && !wide {
			return
		}
		for _, t := range proxy.Types {
			fmt.Fprintf(w, "\n%s\tVERSION\n", strings.ToUpper(show.LastWord(t.Type)))
			for _, n := range t.Names {
				fmt.Fprintf(w, "%s\t%s\n", n.Name, cmp.Or(n.Version, "there is none"))
			}
		}
	})
}

func (a *asked) explainResource(ctx context.Context, node, typeName, name, field string) error {
	query := "?proxyID=" + url.QueryEscape(node)
	e := show.Explained{Field: field}
	if err := a.page(ctx, "/debug/explain"+query+"&type="+url.QueryEscape(typeName)+"&name="+url.QueryEscape(name), &e.Explanation); err != nil {
		return err
	}
	var all []xds.StreamLedger
	if err := a.page(ctx, "/debug/ledger"+query, &all); err != nil {
		return err
	}
	e.State = show.StateIn(all, e.Connection, e.Type, name)
	if field != "" {
		var err error
		if e.Value, err = a.fieldOf(ctx, query, &e); err != nil {
			return err
		}
		if found, known, err := a.holders(ctx, e.Rows, e.Value); err != nil {
			fmt.Fprintf(a.p.err, "coxswain: where the value stands is not known: %v\n", err)
		} else if known {
			e.Holders = &found
		}
	}
	return a.print(e, func(w io.Writer, wide bool) { show.Explanation(w, e, wide) })
}

// fieldOf reads a field of the resource that the proxy is to have.
func (a *asked) fieldOf(ctx context.Context, query string, e *show.Explained) (json.RawMessage, error) {
	var dump struct {
		Configs []map[string]json.RawMessage `json:"configs"`
	}
	if err := a.page(ctx, "/debug/config_dump"+query+"&types="+url.QueryEscape(e.Type), &dump); err != nil {
		return nil, err
	}
	for _, c := range dump.Configs {
		if found := resourceIn(c, e.Name); found != nil {
			return fieldAt(found, e.Field)
		}
	}
	return nil, fmt.Errorf("the proxy has no %s %s to read a field of", show.LastWord(e.Type), e.Name)
}

// resourceIn finds a resource by name in a section of a configuration dump.
func resourceIn(section map[string]json.RawMessage, name string) any {
	for _, raw := range section {
		var items []map[string]any
		if json.Unmarshal(raw, &items) != nil {
			continue
		}
		for _, item := range items {
			if active, ok := item["active_state"].(map[string]any); ok {
				item = active
			}
			for _, v := range item {
				if r, ok := v.(map[string]any); ok && (r["name"] == name || r["cluster_name"] == name) {
					return r
				}
			}
		}
	}
	return nil
}

// fieldAt walks a path such as a.b[0].c.
func fieldAt(at any, path string) (json.RawMessage, error) {
	walked := ""
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		var next any
		switch v := at.(type) {
		case map[string]any:
			var ok bool
			if next, ok = v[part]; !ok {
				return nil, usageError{fmt.Errorf("--field %s: %s has no field %q; it has %s", path, cmp.Or(walked, "the resource"), part, fieldsOf(v))}
			}
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i < 0 || i >= len(v) {
				return nil,
					usageError{fmt.Errorf("--field %s: %s is a list of %d, which has no element %q", path, cmp.Or(walked, "the resource"), len(v), part)}
			}
			next = v[i]
		default:
			return nil, usageError{fmt.Errorf("--field %s: %s is a value and has no fields", path, cmp.Or(walked, "the resource"))}
		}
		at, walked = next, strings.TrimPrefix(walked+"."+part, ".")
	}
	return json.Marshal(at)
}

func fieldsOf(v map[string]any) string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(v)), ", "), "none")
}
