package analysis

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// What the wrong example of each code is told, and that nothing is said about the right one.
func TestExamples(t *testing.T) {
	for _, c := range Codes() {
		t.Run(c.ID, func(t *testing.T) {
			if c.Title == "" || strings.HasSuffix(c.Title, ".") || c.Explanation == "" {
				t.Errorf("title %q, explanation %q", c.Title, c.Explanation)
			}
			wrong := analyzed(t, c.Wrong)
			if c.ID == invalid {
				wrong = checked(c.Wrong)
			}
			if !slices.ContainsFunc(wrong, func(r Result) bool { return r.Code == c.ID }) {
				t.Errorf("the wrong example is told %v", told(wrong))
			}
			if right := analyzed(t, c.Right); len(right) > 0 {
				t.Errorf("the right example is told %v", told(right))
			}
		})
	}
}

func analyzed(t *testing.T, e finding.Example) []Result {
	t.Helper()
	var r Reader
	r.Add("example.yaml", []byte(e.Documents))
	r.AddRemote("east", "remote.yaml", []byte(e.Remote))
	if e.Mesh != "" {
		r.SetMesh("mesh.yaml", []byte(e.Mesh))
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	return Analyze(r.Input)
}

// checked returns what is wrong with resources by themselves.
func checked(e finding.Example) (all []Result) {
	r := Reader{Check: validation.New().Check}
	r.Add("example.yaml", []byte(e.Documents))
	for _, f := range r.single() {
		all = append(all, Result{&Resource{}, finding.Finding{Code: f.Code, Severity: f.Severity, Message: f.Message}})
	}
	return all
}

func told(list []Result) (texts []string) {
	for _, f := range places(list) {
		texts = append(texts, f.Error())
	}
	return texts
}

var quotedID = regexp.MustCompile(`"((COX|IST)\d{4})"`)

// Each code that analyzers use is explained, and each that is explained is used.
func TestCodesAreExplained(t *testing.T) {
	known := map[string]bool{}
	for _, c := range Codes() {
		known[c.ID] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range quotedID.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
			if !known[m[1]] {
				t.Errorf("%s: %s has no file in codes/", name, m[1])
			}
		}
	}
	for id := range known {
		if !used[id] {
			t.Errorf("%s is explained, and never used", id)
		}
	}
}
