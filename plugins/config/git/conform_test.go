package git

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// TestConformance: config/git is a config source as any other.
func TestConformance(t *testing.T) {
	w := newWork(t)
	w.commit(map[string]string{"all.yaml": "# nothing\n"})
	plugintest.Conform(t, plugintest.Suite{
		Kind: "config", Config: fmt.Sprintf(`{"repository": %q, "interval": "1s"}`, w.dir), BadConfigs: []any{`{}`, `{"repository": "x"}`}, Many: 3000,
		Source: func(rows int) error {
			var text strings.Builder
			text.WriteString("# a branch\n")
			for i := range rows {
				text.WriteString(entry(fmt.Sprintf("entry-%d", i), fmt.Sprintf("entry-%d", i)) + "---\n")
			}
			w.commit(map[string]string{"all.yaml": text.String()})
			return nil
		},
	}, plugintest.Memory(Plugin()))
}
