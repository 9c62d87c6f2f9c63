package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, " ")
}

// shelved returns name=host of what a shelf offers.
func shelved(s *shelf) string {
	rows := map[string]*sdk.Row{}
	for name, it := range s.items {
		if it.row != nil {
			rows[name.Key] = it.row
		}
	}
	return routes(rows)
}

func TestLastGoodVersions(t *testing.T) {
	broken := func(name string) string {
		return strings.Replace(route(name, "new"), "hosts:", "hosts: [", 1)
	}
	const nameless = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: [}\n"
	for _, c := range []struct{ name, before, after, want string }{
		{"by name", "a b", route("b", "new") + "---\n" + broken("a"), "a=old b=new"},
		{"never good", "a", route("a", "new") + "---\n" + broken("b"), "a=new"},
		{"one nameless for one gone", "a b c", route("c", "new") + "---\n" + route("a", "new") + "---\n" + nameless, "a=new b=old c=new"},
		{"nameless at its place", "a b c", nameless + "---\n" + route("c", "new"), "a=old c=new"},
		{"whole file", "a b", "{", "a=old b=old"},
		{"cut", "a b c d", route("a", "new") + "---\n" + route("b", "new")[:60], "a=new b=old c=old d=old"},
		{"cut behind a name", "a b c d", route("a", "new") + "---\n" + broken("b"), "a=new b=old c=old d=old"},
		{"cut to another name", "a bc c d", route("a", "new") + "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: b\nspec: {",
			"a=new bc=old c=old d=old"},
		{"cut, with a new one in front", "a b c", route("x", "new") + "---\n" + route("a", "new") + "---\n" + broken("b"), "a=new b=old c=old x=new"},
		{"gone before a faulty one", "a b c", broken("c"), "c=old"},
		{"gone cleanly", "a b", route("b", "new"), "b=new"},
		{"emptied", "a b", "# nothing\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var texts []string
			for _, name := range strings.Fields(c.before) {
				texts = append(texts, route(name, "old"))
			}
			before := arrange("f", kinds.Read("f", []byte(strings.Join(texts, "---\n"))), nil)
			if got := shelved(arrange("f", kinds.Read("f", []byte(c.after)), before)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestResourceTwiceInOneFile(t *testing.T) {
	s := arrange("f", kinds.Read("f", []byte(route("a", "one")+"---\n"+route("a", "two"))), nil)
	if shelved(s) != "a=one" || len(s.faults) != 1 || s.faults[0].Place() != "f:10:1" || !strings.Contains(s.faults[0].Message, "f:1:1") {
		t.Errorf("got %s, %v", shelved(s), s.faults)
	}
}

// What moves to another file and is broken on the way stays served.
func TestMoveThatBreaks(t *testing.T) {
	c := newCatalog()
	c.put("a", arrange("a", kinds.Read("a", []byte(route("x", "one"))), nil))
	c.settle()
	c.drop("a")
	c.put("b", arrange("b", kinds.Read("b", []byte(strings.Replace(route("x", "two"), "hosts", "hots", 1))), nil))
	ch := c.settle()
	if len(ch.deletes) != 0 || len(ch.faults.New) != 1 {
		t.Errorf("got %+v", ch)
	}
	c.drop("b")
	if ch = c.settle(); len(ch.deletes[kinds.VirtualService]) != 1 {
		t.Errorf("got %+v", ch)
	}
}

// files writes n files of per resources each, and returns a library of them.
func files(t testing.TB, dir string, n, per int) *library {
	t.Helper()
	for i := range n {
		var texts []string
		for j := range per {
			texts = append(texts, route(fmt.Sprintf("r%d-%d", i, j), "one"))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newLibrary(Config{Dir: dir, Settle: time.Millisecond, MaxFile: defaultMaxFile}, func(sdk.Level, string, ...any) {})
}

func compareAll(t testing.TB, l *library) *changes {
	t.Helper()
	found, err := scan(l.config.Dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	l.compare(found, time.Now())
	return l.catalog.settle()
}

// One changed file costs one read and one parse, and within it one document.
func TestOneEditCostsOneParse(t *testing.T) {
	dir := t.TempDir()
	l := files(t, dir, 50, 10)
	if ch := compareAll(t, l); len(ch.upserts[kinds.VirtualService]) != 500 || l.work != (work{50, 50}) {
		t.Fatalf("%d rows, %+v", len(ch.upserts[kinds.VirtualService]), l.work)
	}
	path := filepath.Join(dir, "7.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(content), "name: r7-9\nspec:\n  hosts:\n  - one", "name: r7-9\nspec:\n  hosts:\n  - two", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	documents := 0
	if _, err := parseFile(kinds.Reader{}, path, []byte(edited), l.files[path].parsed, func(kinds.Document) { documents++ }); err != nil {
		t.Fatal(err)
	}
	if documents != 1 {
		t.Errorf("%d documents parsed", documents)
	}
	if ch := compareAll(t, l); routes(keyed(ch.upserts[kinds.VirtualService])) != "r7-9=two" || l.work != (work{51, 51}) {
		t.Errorf("%v, %+v", ch.upserts, l.work)
	}
	l.read([]string{path}, time.Now())
	if ch := compareAll(t, l); len(ch.upserts) != 0 || l.work != (work{52, 51}) {
		t.Errorf("touched: %v, %+v", ch.upserts, l.work)
	}
}

func keyed(rows []*sdk.Row) map[string]*sdk.Row {
	m := map[string]*sdk.Row{}
	for _, r := range rows {
		m[r.Key] = r
	}
	return m
}

// Documents that an edit moves keep what they say and get new places.
func TestMovedDocuments(t *testing.T) {
	p := parsedFile(t, route("a", "one")+"---\n"+route("b", "one"), nil)
	q := parsedFile(t, "# a comment\n"+route("a", "two")+"---\n"+route("b", "one"), p)
	if got := q.docs[1].Row.Source; got != "f:11:1" {
		t.Errorf("source %s", got)
	}
	if p.docs[1].Row.Source != "f:10:1" {
		t.Error("the row that was given away changed")
	}
}

func parsedFile(t *testing.T, text string, before *parsed) *parsed {
	t.Helper()
	p, err := parseFile(kinds.Reader{}, "f", []byte(text), before, func(kinds.Document) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTooManyDocuments(t *testing.T) {
	_, err := parseFile(kinds.Reader{}, "f", []byte(strings.Repeat("---\na: 1\n", maxDocuments+1)), nil, func(kinds.Document) {})
	if err == nil || !strings.Contains(err.Error(), "it has 100001 documents") {
		t.Error(err)
	}
}
