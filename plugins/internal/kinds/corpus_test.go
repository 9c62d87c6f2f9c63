package kinds

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	goyaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// What the JSON methods of Istio's own types make of a document, we make too.
func TestCorpusIsReadAsIstioReadsIt(t *testing.T) {
	count := 0
	eachYAML(t, shared.Dir(t, "parity/cases"), func(path string, content []byte) {
		if !strings.Contains(path, "/config/") {
			return
		}
		for _, doc := range Read(path, content) {
			for _, f := range doc.Faults {
				t.Error(f)
			}
		}
		for _, chunk := range protoyaml.Split(content) {
			count += compare(t, path, chunk)
		}
	})
	if count < 300 {
		t.Errorf("only %d documents compared", count)
	}
}

// Kubernetes' validation refuses some of these for their meaning; they are read all the same.
func TestValidationCorpusIsReadAsIstioReadsIt(t *testing.T) {
	eachYAML(t, shared.Dir(t, "fixtures/crd-validation"), func(path string, content []byte) {
		for _, chunk := range protoyaml.Split(content) {
			if bytes.Contains(chunk.Text, []byte("_err:")) {
				chunk.Text = withoutError(chunk.Text)
			}
			compare(t, path, chunk)
		}
	})
}

func withoutError(text []byte) []byte {
	var kept [][]byte
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		if !bytes.HasPrefix(line, []byte("_err:")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}

// compare reads one document in both ways and returns how many objects it had.
func compare(t *testing.T, path string, chunk protoyaml.Chunk) int {
	docs := Reader{}.ReadChunk(path, chunk)
	if len(docs) != 1 || docs[0].Foreign != "" {
		return 0
	}
	doc := docs[0]
	kind, ok := Lookup(doc.Table)
	if !ok {
		t.Errorf("%s:%d: %v", path, doc.Line, doc.Faults)
		return 0
	}
	text, err := yaml.YAMLToJSON(chunk.Text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	want, got := kind.New(), kind.New()
	if object.Spec != nil && !bytes.Equal(object.Spec, []byte("null")) {
		err = json.Unmarshal(object.Spec, want)
	}
	node, fault := chunk.Parse()
	if fault != nil {
		t.Fatalf("%s: %v", path, fault)
	}
	faults := protoyaml.Decode(under(node, "spec"), "spec", got)
	if slices.ContainsFunc(faults, stricter) {
		return 1
	}
	if (err != nil) != (len(faults) > 0) {
		t.Errorf("%s:%d: Istio's API says %v, we say %v", path, doc.Line, err, faults)
	} else if err == nil && !proto.Equal(got, want) {
		t.Errorf("%s:%d: differs from Istio's API\ngot  %v\nwant %v", path, doc.Line, got, want)
	}
	return 1
}

// stricter reports whether a mistake is one that Istio's types overlook, and Kubernetes does not.
func stricter(f protoyaml.Fault) bool {
	return strings.HasPrefix(f.Reason, "unknown field") || strings.HasPrefix(f.Reason, "null is no value")
}

// under returns what stands under a key of a mapping; null where nothing does.
func under(mapping *goyaml.Node, key string) *goyaml.Node {
	pairs, _ := protoyaml.Pairs(mapping)
	for _, p := range pairs {
		if p.Key.Value == key {
			return p.Value
		}
	}
	return &goyaml.Node{Kind: goyaml.ScalarNode, Tag: "!!null"}
}

func eachYAML(t *testing.T, folder string, do func(path string, content []byte)) {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		do(path, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
