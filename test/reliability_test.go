package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReliability: each test that docs/reliability.md names is there, and each cell of who may hurt
// whom names one, or a case of the last table.
func TestReliability(t *testing.T) {
	text, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	page := string(text)
	cases, row := map[string]bool{}, regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(page[strings.Index(page, "<!-- figures"):], -1) {
		cases[m[1]] = true
	}
	if len(tests) < 1000 || len(cases) < 50 {
		t.Fatalf("%d tests, %d cases", len(tests), len(cases))
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, m := range quoted.FindAllStringSubmatch(page, -1) {
		name, _, _ := strings.Cut(m[1], "/")
		if strings.HasPrefix(name, "Test") && !tests[name] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	cells := 0
	_, rest, _ := strings.Cut(page, "## Who may hurt whom")
	matrix, _, _ := strings.Cut(rest, "\n\nWhat a hostile trial")
	for line := range strings.Lines(matrix) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| |") {
			continue
		}
		parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(parts) != 8 {
			t.Errorf("%s has %d cells, not 8", line, len(parts))
		}
		for n, cell := range parts[1:] {
			cells++
			names := quoted.FindAllStringSubmatch(cell, -1)
			if !slices.ContainsFunc(names, func(m []string) bool { return cases[m[1]] || tests[m[1]] }) {
				t.Errorf("%s, column %d, names neither a test nor a case:%s", strings.TrimSpace(parts[0]), n+1, cell)
			}
		}
	}
	if cells < 40 {
		t.Errorf("there are %d cells", cells)
	}
}

// TestThreats: each way in of docs/threats.md has a test or a package of tests that shows what
// holds there, and each is there.
func TestThreats(t *testing.T) {
	text, err := os.ReadFile("../docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, rows := testNames(t), 0
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(parts) != 5 || strings.TrimSpace(parts[4]) == "shown by" {
			continue
		}
		rows++
		names := quoted.FindAllStringSubmatch(parts[4], -1)
		if len(names) == 0 {
			t.Errorf("nothing shows what holds for%s", parts[0])
		}
		for _, m := range names {
			if strings.HasPrefix(m[1], "Test") && tests[m[1]] {
				continue
			}
			if is, err := os.Stat("../" + m[1]); err != nil || !is.IsDir() {
				t.Errorf("%s: there is neither a test nor a folder %s", strings.TrimSpace(parts[0]), m[1])
			}
		}
	}
	if rows < 15 {
		t.Errorf("there are %d rows", rows)
	}
}

// TestWhatIsWritten: docs/kubernetes.md says of each controller what it writes into a cluster, what
// of others stays, and which test shows it.
func TestWhatIsWritten(t *testing.T) {
	text, err := os.ReadFile("../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## What it writes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	controllers, err := filepath.Glob("../plugins/controller/*/README.md")
	if err != nil || len(controllers) < 10 {
		t.Fatal(controllers, err)
	}
	for _, file := range controllers {
		name := "controller/" + filepath.Base(filepath.Dir(file))
		if !regexp.MustCompile(`(?m)^\| [^|]*\b` + name + `\b`).MatchString(table) {
			t.Errorf("it says nothing of %s", name)
		}
	}
	tests, shown := testNames(t), regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(table, -1)
	for _, m := range shown {
		if !tests[m[1]] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	if len(shown) < len(controllers) {
		t.Errorf("%d tests show what holds for %d controllers", len(shown), len(controllers))
	}
}

// testNames are those of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	tests, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	goFiles(t, "..", func(file string) error {
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(file)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	return tests
}
