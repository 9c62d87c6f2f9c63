package manifest

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is said now into testdata")

func TestMistakes(t *testing.T) {
	const file = "testdata/mistakes.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		in, want := archive.Files[i], &archive.Files[i+1]
		t.Run(in.Name, func(t *testing.T) {
			set, err := Parse(in.Name, in.Data)
			if err == nil {
				t.Fatalf("no error, but %d plugins", len(set.Plugins))
			}
			got := err.Error() + "\n"
			if *update {
				want.Data = []byte(got + "\n")
			} else if got != strings.TrimRight(string(want.Data), "\n")+"\n" {
				t.Errorf("got:\n%swant:\n%s", got, want.Data)
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParse(t *testing.T) {
	const text = `
plugins:
  - name: mine
    kind: generator
    process:
      command: ./mine
      args: [-v, "2"]
      env: {HOME: /nowhere}
      files: [{path: a.py, sha256: 00000000000000000000000000000000000000000000000000000000000000aa}]
      tls: off
    config: {z: 1, a: [true, null, 2.5, 18446744073709551615, 2020-01-01, "5"], n: {y: ~}}
    types: [CDS, example.org/Thing]
    select:
      generator: grpc
      metadata: {A.b: "x*"}
      labels: {app: web, tier: 5}
    optional: true
    onFailure: block
    limits: &limits {start: 1m30s, memory: 256Mi, rows: 10, rowBytes: 64k}
    allow: {env: [PATH]}
    insecure: true
    guard: {maxRemoved: 30%}
    rollback: {nackedProxies: 3, window: 10m}
  - name: module
    kind: patch
    wasm: {path: m.wasm, memory: 16Mi, instances: 2, allow: {http: ["*.example.org"], files: [/etc/x], clock: true}}
    onFailure: skip
    limits:
      <<: *limits
      start: 5s
`
	set, err := Parse("dir/plugins.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if set.Dir() != "dir" || len(set.Plugins) != 2 {
		t.Fatalf("got %d plugins in %s", len(set.Plugins), set.Dir())
	}
	a, b := set.Plugins[0], set.Plugins[1]
	if got, want := string(a.Config), `{"a":[true,null,2.5,18446744073709551615,"2020-01-01","5"],"n":{"y":null},"z":1}`; got != want {
		t.Errorf("config %s, want %s", got, want)
	}
	if got, want := a.Types, []TypeURL{ShortTypes()["CDS"], "example.org/Thing"}; !reflect.DeepEqual(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
	if a.At.String() != "dir/plugins.yaml:3:5" || a.Carrier() != "process" || b.Carrier() != "wasm" {
		t.Errorf("at %v, %s, %s", a.At, a.Carrier(), b.Carrier())
	}
	if a.Select.Labels["tier"] != "5" || a.Guard.MaxRemoved.Percent != 30 || a.Rollback.NackedProxies.Count != 3 {
		t.Errorf("got %+v, %+v, %+v", a.Select, a.Guard, a.Rollback)
	}
	l := b.Limits
	if l.Start != 5*time.Second || l.Memory != 256<<20 || l.RowBytes != 64000 || l.Rows != 10 || l.Stop != 5*time.Second {
		t.Errorf("limits %+v", l)
	}
}

func TestDefaultSet(t *testing.T) {
	text, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Parse("plugins.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Builtins("config/file")) != 1 {
		t.Error("no config/file, which --configDir is for")
	}
}

func TestSetConfig(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"none", ``, `{"dir":"/d"}`},
		{"over", `{"dir":"x","other":1}`, `{"dir":"/d","other":1}`},
		{"list", `[1]`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Entry{Name: "a", Config: JSON(c.config)}
			err := e.SetConfig(map[string]any{"dir": "/d"})
			if (err != nil) != (c.want == "") || err == nil && string(e.Config) != c.want {
				t.Errorf("got %s, %v; want %s", e.Config, err, c.want)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	_, err := Parse("f.yaml", bytes.Repeat([]byte("- {name: a, kind: config, builtin: config/file}\n"), 50_000))
	if err == nil || !strings.Contains(err.Error(), "f.yaml:1:1: the file is larger than 1 MiB") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/mistakes.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if set, err := Parse("f.yaml", text); (set == nil) == (err == nil) {
			t.Errorf("set %v, error %v", set, err)
		}
	})
}
