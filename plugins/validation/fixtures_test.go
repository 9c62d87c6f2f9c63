package validation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"go.yaml.in/yaml/v3"
)

// elsewhere are documents that were recorded with other versions, whether they are refused here,
// and with what words; docs/differences.md says why.
var elsewhere = map[string]struct {
	refused bool
	says    string
}{
	"envoyfilter-invalid 0": {true, "only support waypointMatch when context is WAYPOINT"},
	"envoyfilter-invalid 1": {true, "only support waypointMatch when context is WAYPOINT"},
	"envoyfilter-invalid 2": {true, "Invalid value: 65536: port must be between 1-65535"},
	"wasm-invalid 11":       {true, "spec: Required value"}, "wasm-invalid 12": {true, "spec.url: Required value"},
	"reqauth-invalid 19": {false, "spec.jwtRules[0].presence: unknown field"},
}

var marked = regexp.MustCompile(`(?m)^_err:.*\n`)

// Istio's own examples of what a Kubernetes API server accepts and refuses by the definitions.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "fixtures/crd-validation"), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	reader := kinds.Reader{Check: New().Check}
	count := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, chunk := range protoyaml.Split(content) {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			var mark struct {
				Err string `yaml:"_err"`
			}
			if err := yaml.Unmarshal(chunk.Text, &mark); err != nil {
				t.Fatal(err)
			}
			chunk.Text = marked.ReplaceAll(chunk.Text, nil)
			if len(bytes.TrimSpace(chunk.Text)) == 0 {
				continue
			}
			count++
			expect(t, name, i, mark.Err, reader.ReadChunk(file, chunk))
		}
	}
	if count < 110 {
		t.Errorf("only %d documents", count)
	}
}

// expect checks what became of a document: refused with a text, or accepted where there is none.
func expect(t *testing.T, name string, i int, text string, docs []kinds.Document) {
	if len(docs) != 1 {
		t.Errorf("%s %d: %d objects", name, i, len(docs))
		return
	}
	d := docs[0]
	var said []string
	for _, f := range d.Faults {
		said = append(said, f.Error())
	}
	refused, all := d.Row == nil, strings.Join(said, "\n")
	invalid := strings.HasSuffix(name, "-invalid")
	where := fmt.Sprintf("%s %d", name, i)
	exception, excepted := elsewhere[where]
	switch {
	case excepted && (refused != exception.refused || !strings.Contains(all, exception.says) || strings.Contains(all, text)):
		t.Errorf("%s (%s): refused %v, which is not the known difference:\n%s", where, d.Name, refused, all)
	case excepted:
	case refused != invalid:
		t.Errorf("%s (%s): refused %v:\n%s", where, d.Name, refused, all)
	case invalid && !strings.Contains(all, text):
		t.Errorf("%s (%s): no %q in\n%s", where, d.Name, text, all)
	}
}

// What istiod serves is not refused.
func TestRecordedConfigurationsAreAccepted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "parity/cases"), "*", "config", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	reader := kinds.Reader{Check: New().Check}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range reader.Read(file, content) {
			for _, f := range d.Faults {
				if d.Row == nil {
					t.Error(f)
				} else {
					t.Log(f)
				}
			}
		}
	}
}
