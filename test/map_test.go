package test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const mapFile = "../docs/map.md"

const mapTitle = `# A map of the code

Each package, what it is, and which tests to run after a change in it. Made from the packages' comments and imports:
don't edit it, but run ` + "`go test ./test -run TestMap -update`" + `. [CONTRIBUTING.md](../CONTRIBUTING.md) says how
to find the place for a change.

`

// mapped is a package as the map shows it.
type mapped struct {
	ImportPath, Name, Doc              string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	folder                             string
	importers                          []*mapped
}

func (m *mapped) tested() bool { return len(m.TestGoFiles)+len(m.XTestGoFiles) > 0 }

// TestMap: docs/map.md has a line for each package.
func TestMap(t *testing.T) {
	all := readMap(t)
	var out strings.Builder
	out.WriteString(mapTitle)
	for _, part := range []struct{ folder, is string }{
		{"core", "The control plane without opinions: plugins, tables, revisions, xDS"},
		{"plugins", "What the command has built in: sources, generators, patches, authenticators, controllers"},
		{"sdk", "What authors of plugins import"},
		{"cmd", "The command: flags, environment, files, and what it prints"},
		{"internal", "What everything may import"},
		{"examples", "What a user would write"},
		{"test", "Trials of the whole, and what tests share"},
	} {
		fmt.Fprintf(&out, "## %s\n\n%s.\n\n| package | what it is | changed it? run |\n|---|---|---|\n", part.folder, part.is)
		for _, m := range all {
			if under(m.folder, part.folder) && len(m.GoFiles) > 0 {
				if m.Doc == "" {
					t.Errorf("%s has no package comment", m.folder)
				}
				fmt.Fprintf(&out, "| `%s` | %s | %s |\n", m.folder, sentence(m), testsOf(m))
			}
		}
		out.WriteString("\n")
	}
	want := strings.TrimSuffix(out.String(), "\n")
	if *update {
		if err := os.WriteFile(mapFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(mapFile); err != nil || string(got) != want {
		t.Errorf("docs/map.md is not as the code is: run go test ./test -run TestMap -update (%v)", err)
	}
}

func readMap(t *testing.T) (all []*mapped) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", module+"...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*mapped{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m mapped
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		m.folder, by[m.ImportPath] = local(m.ImportPath), &m
		all = append(all, &m)
	}
	for _, m := range all {
		imports := slices.Concat(m.Imports, m.TestImports, m.XTestImports)
		slices.Sort(imports)
		for _, i := range slices.Compact(imports) {
			if of := by[i]; of != nil && of != m {
				of.importers = append(of.importers, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b *mapped) int { return strings.Compare(a.folder, b.folder) })
	return all
}

// sentence is a package's comment without its beginning, “Package NAME”.
func sentence(m *mapped) string {
	s := strings.TrimSuffix(m.Doc, ".")
	for _, begin := range []string{"Package " + m.Name + " ", "Command " + path.Base(m.folder) + " "} {
		s = strings.TrimPrefix(s, begin)
	}
	return strings.NewReplacer("|", "\\|", "`", "").Replace(s)
}

// mostTests is how many packages the map names whose tests are to be run.
const mostTests = 3

// testsOf are the packages whose tests meet a package: its own and, where it has none, those of
// the packages that are next above it, the ones that lie near it first.
func testsOf(m *mapped) string {
	found := []*mapped{}
	if m.tested() {
		found = append(found, m)
	}
	seen := map[*mapped]bool{m: true}
	for at := m.importers; len(found) == 0 && len(at) > 0; {
		var above []*mapped
		for _, i := range at {
			if seen[i] {
				continue
			}
			if seen[i] = true; i.tested() {
				found = append(found, i)
			}
			above = append(above, i.importers...)
		}
		at = above
	}
	slices.SortFunc(found, func(a, b *mapped) int {
		return cmp.Or(cmp.Compare(near(b.folder, m.folder), near(a.folder, m.folder)), strings.Compare(a.folder, b.folder))
	})
	if len(found) == 0 {
		return "it is a program: run it"
	}
	var names []string
	for _, f := range found[:min(len(found), mostTests)] {
		names = append(names, "`./"+f.folder+"`")
	}
	if len(found) > mostTests {
		names = append(names, fmt.Sprintf("and %d more", len(found)-mostTests))
	}
	return strings.Join(names, ", ")
}

// near is how many folders two paths have in common at their beginning.
func near(a, b string) (n int) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}
