package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, " ")
}

// files writes n files of per resources each, and returns a cache of them.
func files(t testing.TB, dir string, n, per int) *cache {
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
	return newCache(Config{Dir: dir, Settle: time.Millisecond, MaxFile: defaults().MaxFile}, func(sdk.Level, string, ...any) {})
}

func compareAll(t testing.TB, l *cache) *catalog.Changes {
	t.Helper()
	found, err := scan(l.config.Dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	l.compare(found, time.Now())
	return l.catalog.Changes()
}

// One changed file costs one read and one parse, and within it one document.
func TestOneEditCostsOneParse(t *testing.T) {
	dir := t.TempDir()
	l := files(t, dir, 50, 10)
	if ch := compareAll(t, l); len(ch.Upserts[kinds.VirtualService]) != 500 || l.work != (work{50, 50}) {
		t.Fatalf("%d rows, %+v", len(ch.Upserts[kinds.VirtualService]), l.work)
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
	if _, err := catalog.Parse(kinds.Reader{}, path, []byte(edited), l.files[path].parsed, func(kinds.Document) { documents++ }); err != nil {
		t.Fatal(err)
	}
	if documents != 1 {
		t.Errorf("%d documents parsed", documents)
	}
	if ch := compareAll(t, l); routes(keyed(ch.Upserts[kinds.VirtualService])) != "r7-9=two" || l.work != (work{51, 51}) {
		t.Errorf("%v, %+v", ch.Upserts, l.work)
	}
	l.read([]string{path}, time.Now())
	if ch := compareAll(t, l); len(ch.Upserts) != 0 || l.work != (work{52, 51}) {
		t.Errorf("touched: %v, %+v", ch.Upserts, l.work)
	}
}

func keyed(rows []*sdk.Row) map[string]*sdk.Row {
	m := map[string]*sdk.Row{}
	for _, r := range rows {
		m[r.Key] = r
	}
	return m
}
