package validation_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// TestReports: what people have reported, one small configuration each, is judged as it is served.
// errors are the codes of what refuses a resource; analysis those of what is found across
// resources.
func TestReports(t *testing.T) {
	dir := shared.Dir(t, "fixtures/reports")
	folders, err := filepath.Glob(filepath.Join(dir, "*", "config"))
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	type verdict struct{ errors, analysis []string }
	known := map[string]verdict{
		"01-null-fields":                        {analysis: []string{"IST0101", "IST0101", "IST0101"}}, // it names hosts that are elsewhere
		"05-tcp-http-conflict-second-bind":      {analysis: []string{"IST0101"}},                       // and a gateway
		"07-terminate-and-passthrough":          {analysis: []string{"COX3016", "COX3016"}},
		"09-destination-case-and-partial-names": {analysis: []string{"IST0101", "IST0101", "IST0101", "IST0101"}},
		"12-dynamic-dns-exact-host":             {errors: []string{"COX2406", "COX2406", "COX2406"}},
		"2-03-grpc-match-fields-ignored":        {analysis: []string{"IST0101", "IST0101", "IST0101"}},
		"2-10-order-of-one-age-by-name":         {analysis: []string{"IST0160", "IST0160", "IST0109", "IST0109"}},
	}
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		r := &analysis.Reader{Check: validation.New().Check}
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(name, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r.Add(file, text)
		}
		var refused, across []string
		for _, f := range r.Faults {
			if f.Severity == finding.Error {
				refused = append(refused, f.Code)
			}
		}
		for _, f := range analysis.Analyze(r.Input) {
			if f.Severity == finding.Error {
				across = append(across, f.Code)
			}
		}
		if want := known[name]; !slices.Equal(refused, want.errors) || !slices.Equal(across, want.analysis) {
			t.Errorf("%s: refused for %v, want %v; across resources %v, want %v\n%v", name, refused, want.errors, across, want.analysis, r.Faults)
		}
	}
	for name := range known {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
