// Package bugreport puts what a control plane shows of itself into one archive, and answers from
// such an archive what commands ask of a control plane.
//
// The archive is a zip file: index.json says which page is in which file, when it was made and by
// which version. Nothing is in it that the pages don't show: no secret, and of resources that are
// secrets their names alone.
package bugreport

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/istiod"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Index is what index.json has.
type Index struct {
	// Made is when, Version by which version of the command, From the control plane's address.
	Made    time.Time `json:"made"`
	Version string    `json:"version"`
	From    string    `json:"from"`
	// Pages are the files of pages, by path and query.
	Pages map[string]string `json:"pages"`
	// Missing are pages that could not be had, and why; Left are proxies of which there are no
	// explanations, as there are too many.
	Missing map[string]string `json:"missing,omitempty"`
	Left    []string          `json:"left,omitempty"`
}

// Get returns a page of a control plane.
type Get func(ctx context.Context, path string) ([]byte, error)

// Options of a report.
type Options struct {
	Version, From string
	// Proxies is of how many proxies there are dumps and explanations.
	Proxies int
}

// parameterized are pages that say nothing by themselves.
var parameterized = []string{"/debug/explain", "/debug/impact", "/debug/progress", "/debug/rowz", "/debug/config_dump", "/debug/served", "/debug/diff",
	"/debug/route", "/debug/reach", "/debug/changes"}

// Collect writes an archive of all pages but istiod's, which say the same and less. A page that
// can't be had is noted in the index; the error is that none could, or of w.
func Collect(ctx context.Context, get Get, w io.Writer, o Options) (*Index, error) {
	c := &collector{get: get, zip: zip.NewWriter(w), index: &Index{Made: time.Now().UTC(), Version: o.Version,
		From: o.From, Pages: map[string]string{}, Missing: map[string]string{}}}
	raw, err := get(ctx, "/debug/list")
	if err != nil {
		return nil, err
	}
	var pages []string
	if err := json.Unmarshal(raw, &pages); err != nil {
		return nil, fmt.Errorf("/debug/list: %w; is it a control plane of this version?", err)
	}
	for i, name := range pages {
		pages[i] = "/debug/" + name
	}
	pages = slices.DeleteFunc(pages, func(p string) bool { return slices.Contains(parameterized, p) || istiod.Has(p) })
	for _, p := range append([]string{"/debug/list", "/debug/version", "/debug/metrics", "/ready"}, pages...) {
		c.add(ctx, p)
	}
	for _, table := range c.tables {
		c.add(ctx, "/debug/rowz?table="+url.QueryEscape(table))
	}
	for i, node := range c.nodes {
		if i >= o.Proxies {
			c.index.Left = append(c.index.Left, node)
			continue
		}
		of := "?proxyID=" + url.QueryEscape(node)
		for _, p := range []string{"/debug/ledger" + of, "/debug/config_dump" + of, "/debug/explain" + of, "/debug/explain" + of + "&all=true"} {
			c.add(ctx, p)
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	text, err := json.MarshalIndent(c.index, "", "  ")
	if err != nil {
		return nil, err
	}
	c.write("index.json", text)
	return c.index, errors.Join(c.err, c.zip.Close())
}

type collector struct {
	get   Get
	zip   *zip.Writer
	index *Index
	nodes []string
	// tables have objects of configuration, or the mesh's settings.
	tables []string
	err    error
}

func (c *collector) add(ctx context.Context, page string) {
	raw, err := c.get(ctx, page)
	if err != nil {
		c.index.Missing[page] = err.Error()
		return
	}
	switch page {
	case "/debug/ledger":
		c.nodes = nodesOf(raw)
	case "/debug/tables":
		c.tables = tablesOf(raw)
	}
	name := fmt.Sprintf("pages/%03d-%s", len(c.index.Pages), strings.ReplaceAll(strings.Trim(strings.SplitN(page, "?", 2)[0], "/"), "/", "-"))
	c.index.Pages[page] = name
	c.write(name, raw)
}

func nodesOf(ledger []byte) (nodes []string) {
	var all []admin.ProxyStatus
	_ = json.Unmarshal(ledger, &all)
	for _, p := range all {
		nodes = append(nodes, p.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// tablesOf are the tables whose rows /debug/rowz shows, but for those of secrets.
func tablesOf(tables []byte) (names []string) {
	var all []admin.Table
	_ = json.Unmarshal(tables, &all)
	for _, t := range all {
		if !t.Secret && (strings.Contains(t.Name, "/") || t.Name == state.Mesh || t.Name == state.Networks) {
			names = append(names, t.Name)
		}
	}
	return names
}

func (c *collector) write(name string, text []byte) {
	f, err := c.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: c.index.Made})
	if err == nil {
		_, err = f.Write(text)
	}
	c.err = errors.Join(c.err, err)
}
