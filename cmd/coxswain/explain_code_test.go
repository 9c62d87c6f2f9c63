package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	configfile "github.com/coxswain-mesh/coxswain/plugins/config/file"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

// untold are codes that no short text shows: of files as a whole, of values that Istio's kinds have
// not, and of faults of the program.
var untold = []string{"COX1008", "COX1014", "COX1015", "COX1107", "COX1108"}

// sooner are codes whose wrong example breaks a rule of the definitions too, which is told first.
var sooner = []string{"COX2014"}

// What config/file says of each code's examples. Those of the mesh's settings and of several
// resources are tested where they are.
func TestExamplesOfCodes(t *testing.T) {
	checker := validation.New()
	told := func(text string) (said []string) {
		faults, _ := configfile.Validate([]string{"example.yaml"}, func(string) ([]byte, error) { return []byte(text), nil }, checker.Check)
		for _, f := range faults {
			said = append(said, f.Error())
		}
		return said
	}
	for _, c := range validation.Codes() {
		if c.Title == "" || strings.HasSuffix(c.Title, ".") || c.Explanation == "" {
			t.Errorf("%s: title %q, explanation %q", c.ID, c.Title, c.Explanation)
		}
		if c.Wrong.Documents == "" {
			if c.Wrong.Mesh+c.Wrong.Networks == "" && !slices.Contains(untold, c.ID) {
				t.Errorf("%s has no example", c.ID)
			}
			continue
		}
		if wrong := told(c.Wrong.Documents); !slices.ContainsFunc(wrong, func(f string) bool { return strings.Contains(f, "("+c.ID+")") }) &&
			!slices.Contains(sooner, c.ID) {
			t.Errorf("%s: the wrong example is told %q", c.ID, wrong)
		}
		if right := told(c.Right.Documents); len(right) > 0 {
			t.Errorf("%s: the right example is told %q", c.ID, right)
		}
	}
}

// The page lists all codes.
func TestCodesAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| code | title |\n|---|---|\n")
	for _, c := range codes() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", c.ID, c.Title)
	}
	if !strings.HasSuffix(string(page), table.String()) {
		t.Errorf("docs/validation.md must end with:\n%s", table.String())
	}
}

func TestIDsAreUnique(t *testing.T) {
	list := ids()
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("%v", list)
	}
}
