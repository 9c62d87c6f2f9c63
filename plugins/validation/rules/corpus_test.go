package rules

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// What istiod serves is never refused.
func TestRecordedConfigurationsAreTaken(t *testing.T) {
	count := 0
	eachFile(t, shared.Dir(t, "parity/cases"), func(path string, content []byte) {
		if strings.Contains(path, "/config/") {
			count += taken(t, path, content)
		}
	})
	if count < 300 {
		t.Errorf("only %d resources checked", count)
	}
}

func TestValidFixturesAreTaken(t *testing.T) {
	eachFile(t, shared.Dir(t, "fixtures/crd-validation"), func(path string, content []byte) {
		if strings.HasSuffix(path, "-valid.yaml") {
			taken(t, path, content)
		}
	})
}

// taken checks the resources of a file, and returns how many there are.
func taken(t *testing.T, path string, content []byte) (count int) {
	t.Helper()
	for _, r := range resources(t, path, content) {
		count++
		for _, f := range Check(r) {
			if f.Severity == finding.Error {
				t.Errorf("%s: %s %s/%s: %s %s: %s", path, r.Kind, r.Namespace, r.Name, f.Code, f.Field, f.Message)
			} else if testing.Verbose() {
				t.Logf("%s: %s %s/%s: %s %s: %s", filepath.Base(path), r.Kind, r.Namespace, r.Name, f.Code, f.Field, f.Message)
			}
		}
	}
	return count
}

// resources reads the resources of a stream that can be read.
func resources(t *testing.T, path string, content []byte) (list []finding.Resource) {
	t.Helper()
	reader := kinds.Reader{Check: func(r finding.Resource) []finding.Finding {
		list = append(list, r)
		return nil
	}}
	reader.Read(path, content)
	return list
}

func eachFile(t *testing.T, folder string, do func(path string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		do(path, bytes.TrimPrefix(content, []byte("\ufeff")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
