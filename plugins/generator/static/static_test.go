package static

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// write writes a file as an editor does: aside, and then in place of the old one.
func write(t testing.TB, path, text string) {
	t.Helper()
	aside := filepath.Join(filepath.Dir(path), ".aside")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(aside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
}

func cluster(name, timeout string) string {
	return fmt.Sprintf("- {\"@type\": %s, name: %s, connect_timeout: %s}\n", typeCDS, name, timeout)
}

// server plays the core: rows that the plugin published come back in a State.
type server struct {
	*plugintest.Harness
	t    testing.TB
	sent map[string]*sdk.Row
}

func serve(t testing.TB, config any) *server {
	t.Helper()
	s := &server{plugintest.Start(t, Plugin(), config), t, map[string]*sdk.Row{}}
	s.WaitSynced()
	s.commit()
	return s
}

// commit sends what was published since the last time.
func (s *server) commit() {
	rows := s.Rows(table)
	change := plugintest.Rows{Table: table}
	for key, r := range rows {
		if s.sent[key] != r {
			change.Upserts = append(change.Upserts, r)
		}
	}
	for key := range s.sent {
		if rows[key] == nil {
			change.Deletes = append(change.Deletes, key)
		}
	}
	s.sent = rows
	s.Commit(change)
}

// wait waits until the table has the wanted resources (TYPE NAME, short), and commits.
func (s *server) wait(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	s.WaitRows(table, func(rows map[string]*sdk.Row) bool { return slices.Equal(short(rows), want) })
	s.commit()
}

func short(rows map[string]*sdk.Row) (out []string) {
	for _, r := range rows {
		url := r.Labels[typeLabel]
		out = append(out, url[strings.LastIndexByte(url, '.')+1:]+" "+r.Labels[nameLabel])
	}
	slices.Sort(out)
	return out
}

func (s *server) proxy(types ...string) uint64 {
	p := &sdk.Proxy{Types: types}
	s.Attach(p)
	return p.Connection
}

func TestServesFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), cluster("a", "1s"))
	write(t, filepath.Join(dir, "sub", "b.json"), `{"resources": [{"@type": "`+typeCDS+`", "name": "b"}, {"@type": "`+typeEDS+`", "clusterName": "e"}]}`)
	write(t, filepath.Join(dir, "notes.txt"), "not ours")
	write(t, filepath.Join(dir, ".hidden.yaml"), "neither")
	s := serve(t, map[string]any{"dir": dir})
	p := s.proxy(typeCDS, typeEDS, typeLDS)
	got := s.Resources(p, typeCDS)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"a", "b"}) {
		t.Fatalf("clusters %q", names)
	}
	var c clusterv3.Cluster
	if err := proto.Unmarshal(got["a"], &c); err != nil || c.ConnectTimeout.AsDuration() != time.Second {
		t.Errorf("%v, %v", &c, err)
	}
	endpoints := s.Resources(p, typeEDS, "e", "f")
	if _, known := endpoints["f"]; endpoints["e"] == nil || endpoints["f"] != nil || !known {
		t.Errorf("endpoints %v: e must be there, f known to be absent", endpoints)
	}
	if n := len(s.Resources(p, typeLDS)); n > 0 {
		t.Errorf("%d listeners", n)
	}
}

func TestFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a.yaml")
	write(t, a, cluster("a", "1s")+cluster("b", "1s"))
	s := serve(t, map[string]any{"dir": dir})
	p := s.proxy(typeCDS)
	before := s.Resources(p, typeCDS)

	write(t, a, cluster("b", "1s")+cluster("c", "1s"))
	s.wait("Cluster b", "Cluster c")
	view := s.Placement(p)[typeCDS]
	after := s.View(view)
	if names := slices.Sorted(maps.Keys(after)); !slices.Equal(names, []string{"b", "c"}) || string(after["b"]) != string(before["b"]) {
		t.Errorf("clusters %q", names)
	}

	write(t, filepath.Join(dir, "new", "deep", "d.yaml"), cluster("d", "1s"))
	s.wait("Cluster b", "Cluster c", "Cluster d")
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	s.wait("Cluster d")
	if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	s.wait()
}

func TestMistakeKeepsLastGood(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a.yaml")
	write(t, a, cluster("a", "1s"))
	s := serve(t, map[string]any{"dir": dir})
	for _, c := range []struct{ text, want string }{
		{cluster("a", "1s") + "- {\"@type\": " + typeCDS + ", name: b, conect_timeout: 1s}\n", `a.yaml:2:`},
		{cluster("a", "-1s"), `"a": Envoy would refuse it`},
		{strings.Replace(cluster("a", "1s"), "}",
			`, transport_socket: {name: q, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport}}}`,
			1),
			`transport_socket.typed_config: envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport`},
		{"", "is empty"},
		{"a: [", "a.yaml:1:1: not YAML"},
		{"- {name: a}\n", `a.yaml:1:3: [0]: expected a mapping with "@type"`},
		{"- {\"@type\": type.googleapis.com/none, name: a}\n", `unknown type`},
		{"- {\"@type\": " + typeCDS + "}\n", `has no name`},
		{cluster("a", "1s") + cluster("a", "1s"), `a.yaml:2:3: [1]: "a" is there already, at line 1`},
		{"resource: []\n", `did you mean "resources"`},
		{"text\n", "expected a list"},
		{"- {\"@type\": " + typeSRDS + ", name: s, route_configuration_name: r, key: {fragments: [{string_key: a}]}}\n", "not offered when the plugin started"},
	} {
		write(t, a, c.text)
		s.WaitLog(func(level sdk.Level, _ string, fields map[string]string) bool {
			return level == sdk.Error && strings.Contains(fields["error"], c.want)
		})
	}
	if got := short(s.Rows(table)); !slices.Equal(got, []string{"Cluster a"}) {
		t.Errorf("rows %q", got)
	}
	// Others go on, and so does the file when it is repaired.
	write(t, filepath.Join(dir, "b.yaml"), cluster("b", "1s"))
	s.wait("Cluster a", "Cluster b")
	write(t, a, cluster("c", "1s"))
	s.wait("Cluster b", "Cluster c")
	write(t, a, "[]\n")
	s.wait("Cluster b")
}

// TestLinkedDirectory swaps a directory behind a link, as Kubernetes does with what it mounts.
func TestLinkedDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..v1", "a.yaml"), cluster("a", "1s"))
	write(t, filepath.Join(dir, "..v2", "a.yaml"), cluster("b", "1s"))
	link := func(target, name string) {
		aside := filepath.Join(dir, "..tmp")
		if err := os.Symlink(target, aside); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..v1", "..data")
	link("..data/a.yaml", "a.yaml")
	s := serve(t, map[string]any{"dir": dir})
	s.wait("Cluster a")
	link("..v2", "..data")
	s.wait("Cluster b")
}

// TestDirectoryThatGoes: what was read last stays, and what comes back is read.
func TestDirectoryThatGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	write(t, filepath.Join(dir, "a.yaml"), cluster("a", "1s"))
	s := serve(t, map[string]any{"dir": dir})
	s.wait("Cluster a")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	s.WaitLog(func(level sdk.Level, text string, fields map[string]string) bool {
		return level == sdk.Error && strings.Contains(fields["error"], "no such file")
	})
	s.wait("Cluster a")
	write(t, filepath.Join(dir, "b.yaml"), cluster("b", "1s"))
	s.wait("Cluster b")
}

func TestListedFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.conf"), filepath.Join(dir, "b.conf")
	write(t, a, cluster("a", "1s"))
	write(t, filepath.Join(dir, "c.conf"), cluster("c", "1s"))
	s := serve(t, map[string]any{"files": []string{a, b}})
	s.wait("Cluster a")
	write(t, b, cluster("b", "1s"))
	s.wait("Cluster a", "Cluster b")
}

func TestFirstFileCounts(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), cluster("x", "1s"))
	write(t, filepath.Join(dir, "b.yaml"), cluster("x", "2s"))
	s := serve(t, map[string]any{"dir": dir})
	s.WaitLog(func(level sdk.Level, text string, _ map[string]string) bool {
		return level == sdk.Warn && strings.Contains(text, "two files")
	})
	p := s.proxy(typeCDS)
	var c clusterv3.Cluster
	if err := proto.Unmarshal(s.Resources(p, typeCDS)["x"], &c); err != nil || c.ConnectTimeout.AsDuration() != time.Second {
		t.Errorf("%v, %v", &c, err)
	}
	because := s.Explain(typeCDS, s.Placement(p)[typeCDS], "x")
	if len(because.Rows) != 1 || !strings.Contains(because.Rows[0].Key, "a.yaml") {
		t.Errorf("explained by %v", because)
	}
}

func TestRowsOfOtherEntries(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, filepath.Join(one, "a.yaml"), cluster("a", "1s"))
	s := serve(t, map[string]any{"dir": one})
	other := &resource{file: filepath.Join(two, "b.yaml"), typeURL: typeCDS, name: "b"}
	s.Update(table, []*sdk.Row{other.row()})
	p := s.proxy(typeCDS)
	if got := slices.Sorted(maps.Keys(s.Resources(p, typeCDS))); !slices.Equal(got, []string{"a"}) {
		t.Errorf("clusters %q", got)
	}
}

func TestOffersWhatFilesHold(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "- {\"@type\": "+typeRTDS+", name: layer, layer: {a.b: 1}}\n")
	s := serve(t, map[string]any{"dir": dir})
	types := s.Ready().Types
	i := slices.IndexFunc(types, func(x *sdk.Type) bool { return x.Url == typeRTDS })
	if i < 0 || types[i].Traits == nil || types[i].Traits.Rank != 5 || len(types) != len(Plugin().Types)+1 {
		t.Fatalf("types %v", types)
	}
	p := s.proxy(typeRTDS)
	if s.Resources(p, typeRTDS, "layer")["layer"] == nil {
		t.Error("the layer is not served")
	}
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, "[]")
	for _, c := range []struct{ config, field, reason string }{
		{`{}`, "dir", "missing"},
		{`{"dir": "/none/at/all"}`, "dir", "does not exist"},
		{fmt.Sprintf(`{"dir": %q}`, file), "dir", "is a file"},
		{fmt.Sprintf(`{"dir": "/", "files": [%q]}`, file), "files", "excludes"},
		{`{"files": [""]}`, "files[0]", "empty"},
		{`{"directory": "a"}`, "directory", "unknown"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s: %s", c.config, field, reason)
		}
	}
}

func TestOwns(t *testing.T) {
	for _, c := range []struct {
		config Config
		file   string
		want   bool
	}{
		{Config{Dir: "a"}, "a/b.yaml", true},
		{Config{Dir: "a"}, "ab/b.yaml", false},
		{Config{Dir: "."}, "b.yaml", true},
		{Config{Dir: "."}, "/b.yaml", false},
		{Config{Dir: "/"}, "/b.yaml", true},
		{Config{Files: []string{"b.yaml"}}, "b.yaml", true},
		{Config{Files: []string{"b.yaml"}}, "c.yaml", false},
	} {
		if got := c.config.owns(c.file); got != c.want {
			t.Errorf("%+v owns %s: %v", c.config, c.file, got)
		}
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 4)
	t.Chdir(t.TempDir())
	for _, b := range blocks[1:3] {
		write(t, b.Name(), b.Text)
	}
	s := serve(t, config)
	types := []string{typeCDS, typeLDS, typeRDS}
	p := s.proxy(types...)
	var got strings.Builder
	for _, url := range types {
		for _, name := range slices.Sorted(maps.Keys(s.Resources(p, url))) {
			fmt.Fprintf(&got, "%s %s\n", strings.TrimPrefix(url, "type.googleapis.com/"), name)
		}
	}
	if diff := cmp.Diff(blocks[3].Text, got.String()); diff != "" {
		t.Errorf("(-README +got):\n%s", diff)
	}
}
