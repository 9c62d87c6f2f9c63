package file

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/google/go-cmp/cmp"
)

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 5)
	t.Chdir(t.TempDir())
	texts := make(map[string]string)
	for _, b := range blocks {
		name := b.Name()
		texts[name] = b.Text
		if strings.HasPrefix(name, "demo/") {
			write(t, name, b.Text)
		}
	}
	h := plugintest.Start(t, Plugin(), config)
	h.WaitSynced()
	var rows strings.Builder
	for _, table := range kinds.Tables() {
		for _, key := range slices.Sorted(maps.Keys(h.Rows(table))) {
			rows.WriteString(table + " " + key + " " + h.Rows(table)[key].Source + "\n")
		}
	}
	for line := range strings.Lines(strings.TrimSpace(texts["log"])) {
		words, want := readme.Line(t, line)
		h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
			return text == words && maps.Equal(fields, want)
		})
	}
	if diff := cmp.Diff(texts["rows"], rows.String()); diff != "" {
		t.Errorf("rows (-README +got):\n%s", diff)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
