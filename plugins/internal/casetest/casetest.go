// Package casetest reads parity cases for tests: folders with a configuration, the proxies that
// connect, and the answers that istiod gave.
package casetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/registry/serviceentry"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Case is a folder, read.
type Case struct {
	Name string
	// Rows are those of its resources, what registries make of them, and the mesh's settings.
	Rows    []plugintest.Rows
	Proxies []Proxy
}

// Proxy is a proxy of a case, with what it is expected to get: type (cds, eds, lds, rds) -> name ->
// resource.
type Proxy struct {
	Name     string
	Node     *core.Node
	Expected map[string]map[string]any
}

// Dir returns the folder of all cases; the test is skipped where it is absent.
func Dir(t testing.TB) string {
	t.Helper()
	return shared.Dir(t, "parity/cases")
}

// Load reads a case.
func Load(t testing.TB, dir string) *Case {
	t.Helper()
	c := &Case{Name: filepath.Base(dir)}
	c.readConfig(t, dir)
	c.readProxies(t, dir)
	return c
}

func (c *Case) readConfig(t testing.TB, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "config", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no configuration: %v", dir, err)
	}
	tables := map[string][]*sdk.Row{}
	for _, f := range files {
		parse(t, f, read(t, f), tables)
	}
	c.Rows = append(rowsOf(t, tables), settings(t, dir)...)
}

// settings are MeshConfig and MeshNetworks.
func settings(t testing.TB, dir string) []plugintest.Rows {
	t.Helper()
	config := map[string]string{}
	for field, name := range map[string]string{"meshConfig": "mesh.yaml", "networksConfig": "networks.yaml"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			config[field] = path
		}
	}
	h := plugintest.Start(t, mesh.Plugin(), config)
	h.WaitSynced()
	return drain(t, h, state.Mesh, state.Networks)
}

// Rows are what a file's resources are as rows, and what registries make of them.
func Rows(t testing.TB, file string, content []byte) []plugintest.Rows {
	t.Helper()
	tables := map[string][]*sdk.Row{}
	parse(t, file, content, tables)
	return rowsOf(t, tables)
}

func parse(t testing.TB, file string, content []byte, tables map[string][]*sdk.Row) {
	t.Helper()
	for _, d := range kinds.Read(file, content) {
		if d.Row == nil {
			t.Fatalf("%s: %v", file, d.Faults)
		}
		tables[d.Table] = append(tables[d.Table], d.Row)
	}
}

func rowsOf(t testing.TB, tables map[string][]*sdk.Row) []plugintest.Rows {
	t.Helper()
	out := register(t, tables)
	for table, rows := range tables {
		out = append(out, plugintest.Rows{Table: table, Upserts: rows})
	}
	return out
}

// register returns what the ServiceEntry registry makes of the resources.
func register(t testing.TB, tables map[string][]*sdk.Row) []plugintest.Rows {
	t.Helper()
	h := plugintest.Start(t, serviceentry.Plugin(), nil)
	h.Commit(
		plugintest.Rows{Table: kinds.ServiceEntry, Upserts: tables[kinds.ServiceEntry]},
		plugintest.Rows{Table: kinds.WorkloadEntry, Upserts: tables[kinds.WorkloadEntry]},
	)
	return drain(t, h, state.Services, state.Endpoints, state.Workloads)
}

// drain returns what a plugin has published, and ends it.
func drain(t testing.TB, h *plugintest.Harness, tables ...string) []plugintest.Rows {
	t.Helper()
	var out []plugintest.Rows
	for _, table := range tables {
		r := plugintest.Rows{Table: table}
		for _, row := range h.Rows(table) {
			r.Upserts = append(r.Upserts, row)
		}
		out = append(out, r)
	}
	if err := h.Drain(); err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *Case) readProxies(t testing.TB, dir string) {
	t.Helper()
	var file struct {
		Proxies []struct {
			Name string          `json:"name"`
			Node json.RawMessage `json:"node"`
		} `json:"proxies"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "case.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Proxies {
		n := &core.Node{}
		if err := protojson.Unmarshal(p.Node, n); err != nil {
			t.Fatalf("%s: node of %s: %v", dir, p.Name, err)
		}
		var expected map[string]map[string]any
		if err := json.Unmarshal(read(t, filepath.Join(dir, "expected", p.Name+".json")), &expected); err != nil {
			t.Fatal(err)
		}
		c.Proxies = append(c.Proxies, Proxy{Name: p.Name, Node: n, Expected: expected})
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
