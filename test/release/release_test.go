// Package release tries what releases are made of: GoReleaser's configuration, the service for
// systemd, the list of releases, and what docs/stability.md promises.
package release_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

const root = "../.."

// TestConfig: GoReleaser takes its configuration.
func TestConfig(t *testing.T) {
	need.All(t)
	cmd := exec.Command(filepath.Join(tools(t), "goreleaser"), "check")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// mostExposed is what `systemd-analyze security` may say of the service, of 10.
const mostExposed = 1.6

func TestService(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		need.Missing(t, "systemd-analyze; install systemd")
	}
	out, err := exec.Command(tool, "security", "--offline=true", root+"/deploy/systemd/coxswain.service").CombinedOutput()
	found := regexp.MustCompile(`Overall exposure level for coxswain.service: ([0-9.]+)`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > mostExposed {
		t.Errorf("its exposure is %s\n%s", found[1], out)
	}
	if strings.Contains(string(out), "Unknown") {
		t.Errorf("it has what systemd doesn't know\n%s", out)
	}
}

// TestPackaged: what the packages are made of is there.
func TestPackaged(t *testing.T) {
	text, err := os.ReadFile(root + "/.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sources := regexp.MustCompile(`(?:src|postinstall|preremove|cmd): ([^\s,}]+)`).FindAllStringSubmatch(string(text), -1)
	if len(sources) < 10 {
		t.Fatalf("it is made of %q", sources)
	}
	for _, s := range sources {
		path := s[1]
		if strings.HasPrefix(path, "dist-collateral/") || strings.HasPrefix(path, "../.cache/") {
			continue // the release makes it first
		}
		if found, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(found) == 0 {
			t.Errorf("%s is not there", path)
		}
	}
}

// releases are the lines of docs/releases.txt: a version and its commit.
func releases(t *testing.T) (out [][2]string) {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/releases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			t.Fatalf("docs/releases.txt: %q is no version and commit", line)
		}
		out = append(out, [2]string{fields[0], fields[1]})
	}
	return out
}

// TestReleases: versions are semantic and rise, each commit is there and contains that of the
// version before, and the changelog has a section for each.
func TestReleases(t *testing.T) {
	changes, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	all := releases(t)
	if len(all) == 0 {
		t.Fatal("there is no release")
	}
	var last [3]int
	for i, r := range all {
		var v [3]int
		if n, err := fmt.Sscanf(r[0], "v%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || n != 3 || r[0] != fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) {
			t.Errorf("%s is no semantic version", r[0])
		}
		if v[0] < last[0] || v[0] == last[0] && (v[1] < last[1] || v[1] == last[1] && v[2] <= last[2]) {
			t.Errorf("%s comes after %v", r[0], last)
		}
		last = v
		of := "HEAD"
		if i+1 < len(all) {
			of = all[i+1][1]
		}
		cmd := exec.Command("git", "merge-base", "--is-ancestor", r[1], of)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s is no ancestor of %s: %v %s", r[0], r[1], of, err, out)
		}
		if !strings.Contains(string(changes), "\n## "+strings.TrimPrefix(r[0], "v")+"\n") {
			t.Errorf("CHANGELOG.md has no section for %s", r[0])
		}
	}
}

// promise is how a page names a test.
var promise = regexp.MustCompile("`(Test[A-Za-z0-9_]+)` of `([a-z0-9/]+)`")

// TestStability: each promise of docs/stability.md names tests that keep it, each way in of
// docs/threats.md one that shows what is said of it, and those tests are there.
func TestStability(t *testing.T) {
	columns := map[string]int{"stability": 3, "threats": 5}
	for page, least := range map[string]int{"stability": 6, "threats": 20} {
		text, err := os.ReadFile(root + "/docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			tests := promise.FindAllStringSubmatch(line, -1)
			head := strings.Contains(line, "---") || slices.Contains([]string{"what", "way in"}, strings.TrimSpace(cells[0]))
			if len(cells) == columns[page] && len(tests) == 0 && !head {
				t.Errorf("nothing keeps %s", cells[0])
			}
			rows += len(tests)
			for _, test := range tests {
				if !declares(t, filepath.Join(root, test[2]), test[1]) {
					t.Errorf("%s has no %s, which docs/%s.md names", test[2], test[1], page)
				}
			}
		}
		if rows < least {
			t.Errorf("docs/%s.md names %d tests", page, rows)
		}
	}
}

// declares reports whether a folder's tests have one of that name.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
				return true
			}
		}
	}
	return false
}
