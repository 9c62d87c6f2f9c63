package rules

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
)

var codeID = regexp.MustCompile(`^(COX2\d{3}|IST\d{4})$`)

// What the wrong example of each code is told, and that nothing is said about the right one.
func TestExamples(t *testing.T) {
	for _, c := range Codes() {
		t.Run(c.ID, func(t *testing.T) {
			if !codeID.MatchString(c.ID) || c.Title == "" || strings.HasSuffix(c.Title, ".") || c.Explanation == "" {
				t.Errorf("id %q, title %q, explanation %q", c.ID, c.Title, c.Explanation)
			}
			wrong := checkExample(t, c.Wrong)
			if !slices.ContainsFunc(wrong, func(f finding.Finding) bool { return f.Code == c.ID }) {
				t.Errorf("the wrong example is told %v", wrong)
			}
			if right := checkExample(t, c.Right); len(right) > 0 {
				t.Errorf("the right example is told %v", right)
			}
		})
	}
}

// Each code that rules use is explained.
func TestCodesAreExplained(t *testing.T) {
	known := map[string]bool{}
	for _, c := range Codes() {
		known[c.ID] = true
	}
	for _, id := range used(t) {
		if !known[id] {
			t.Errorf("%s has no file in codes/", id)
		}
		delete(known, id)
	}
	for id := range known {
		t.Errorf("%s is explained, and never used", id)
	}
}

func checkExample(t *testing.T, e finding.Example) (all []finding.Finding) {
	t.Helper()
	for _, r := range resources(t, "example.yaml", []byte(e.Documents)) {
		all = append(all, Check(r)...)
	}
	if e.Mesh != "" {
		all = append(all, Check(finding.Resource{Kind: "MeshConfig", Spec: decoded(t, e.Mesh, meshDefaults())})...)
	}
	if e.Networks != "" {
		all = append(all, Check(finding.Resource{Kind: "MeshNetworks", Spec: decoded(t, e.Networks, &mesh.MeshNetworks{})})...)
	}
	if e.Documents+e.Mesh+e.Networks == "" {
		t.Error("an example is empty")
	}
	return all
}

func decoded[M proto.Message](t *testing.T, text string, into M) M {
	t.Helper()
	node, fault := protoyaml.Chunk{Text: []byte(text)}.Parse()
	if fault != nil {
		t.Fatal(fault)
	}
	for _, f := range protoyaml.Decode(node, "", into) {
		t.Error(f)
	}
	return into
}
