package rules

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
)

// Each document of testdata/KIND.yaml is a spec, in namespace default. The comments above it say
// what is found, as `error CODE FIELD` or `warning CODE FIELD`; without such a line nothing is.
// `annotation KEY=VALUE` gives the resource an annotation. The first line is a title.
func TestTables(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(filepath.Base(name), ".yaml")
		for _, chunk := range protoyaml.Split(content) {
			c := readCase(chunk.Text)
			t.Run(kind+"/"+c.title, func(t *testing.T) { c.run(t, kind, chunk) })
		}
	}
}

type tableCase struct {
	title       string
	want        []string
	annotations map[string]string
}

func readCase(text []byte) tableCase {
	c := tableCase{annotations: map[string]string{}}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		comment, ok := strings.CutPrefix(lines.Text(), "# ")
		word, rest, _ := strings.Cut(comment, " ")
		switch {
		case !ok:
		case word == "error" || word == "warning":
			c.want = append(c.want, comment)
		case word == "annotation":
			key, value, _ := strings.Cut(rest, "=")
			c.annotations[key] = value
		case c.title == "":
			c.title = comment
		}
	}
	slices.Sort(c.want)
	return c
}

func (c tableCase) run(t *testing.T, kind string, chunk protoyaml.Chunk) {
	spec, root := specOf(t, kind)
	node, fault := chunk.Parse()
	if fault != nil {
		t.Fatal(fault)
	}
	for _, f := range protoyaml.Decode(node, root, spec) {
		t.Fatal(f)
	}
	var got []string
	found := Check(finding.Resource{Kind: kind, Namespace: "default", Name: "example", Annotations: c.annotations, Spec: spec})
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Code, f.Field))
	}
	slices.Sort(got)
	if !slices.Equal(got, c.want) {
		t.Errorf("line %d: found\n%v\nwant\n%s", node.Line, found, strings.Join(c.want, "\n"))
	}
}

// specOf returns what a document is read into, and the path of it.
func specOf(t *testing.T, kind string) (spec proto.Message, root string) {
	t.Helper()
	switch kind {
	case "MeshConfig":
		return meshDefaults(), ""
	case "MeshNetworks":
		return &mesh.MeshNetworks{}, ""
	}
	for _, k := range kinds.All() {
		if k.Name() == kind {
			return k.New(), "spec"
		}
	}
	t.Fatalf("no kind %s", kind)
	return nil, ""
}

// Hostile texts are refused within bounded time.
func TestHostileValues(t *testing.T) {
	long := strings.Repeat("a", 10<<10)
	nested := strings.Repeat("(", 1000) + "a" + strings.Repeat("){2}", 1000)
	for _, pattern := range []string{nested, "((a{100}){100}){100}", strings.Repeat("a", 20<<10), "(?=x)", `(a)\1`, "["} {
		if regexFault(pattern) == "" {
			t.Errorf("%.20q is taken", pattern)
		}
	}
	for _, pattern := range []string{".*", `^/api/v[0-9]+/(users|orders)(/.*)?$`, "a{1,1000}"} {
		if why := regexFault(pattern); why != "" {
			t.Errorf("%q: %s", pattern, why)
		}
	}
	for _, host := range []string{long, long + ".example.com", "a..b", "", ".", "-a.b", "a.1", "é.com"} {
		if hostFault(host, true) == "" {
			t.Errorf("%.20q is taken", host)
		}
	}
	c := &checker{}
	c.expression("x", strings.Repeat("(", 100_000))
	if len(c.found) != 1 {
		t.Error("a nested expression is taken")
	}
	for _, f := range c.found {
		if len(f.Message) > 500 {
			t.Errorf("a message of %d bytes", len(f.Message))
		}
	}
}
