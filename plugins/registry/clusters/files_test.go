package clusters

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// named is a kubeconfig that calls its cluster so.
func named(id, token string) string {
	return strings.NewReplacer("name: a, cluster", "name: "+id+", cluster", "cluster: a", "cluster: "+id).Replace(kubeconfig(token))
}

// TestDirectory: each YAML file is a cluster with the name that the file has for it. A file that is
// broken keeps what it had, one that goes takes its cluster away, and what is no YAML file is none.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("1.yaml", named("east", "hush"))
	put("2.yml", named("north", "hush"))
	put("3.txt", named("south", "hush"))
	put("4.yaml", named("east", "hush"))
	config, _ := json.Marshal(map[string]any{"directory": dir, "cluster": "west"})
	h := plugintest.Start(t, Plugin(), config)
	is := func(what string, want map[string]string) {
		t.Helper()
		h.WaitRows(Table, func(rows map[string]*sdk.Row) bool {
			if len(rows) != len(want) {
				return false
			}
			for id, from := range want {
				if rows[id] == nil || !strings.Contains(string(rows[id].Payload), `"from":"file:`+from+`"`) {
					return false
				}
			}
			return true
		})
	}
	faulty := func(part string) {
		t.Helper()
		h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool {
			for _, r := range rows {
				if strings.Contains(string(r.Payload), "hush") {
					t.Errorf("a token is told: %s", r.Payload)
				}
				if strings.Contains(string(r.Payload), part) {
					return true
				}
			}
			return false
		})
	}
	is("two", map[string]string{"east": "1.yaml", "north": "2.yml"})
	h.WaitSynced()
	faulty("stands in file:1.yaml, too")
	before := string(h.Rows(Table)["north"].Payload)

	put("2.yml", "hush: [")
	faulty("what stood there before is kept")
	is("one is broken", map[string]string{"east": "1.yaml", "north": "2.yml"})
	put("2.yml", named("north", "other"))
	h.WaitRows(Table, func(rows map[string]*sdk.Row) bool {
		return rows["north"] != nil && string(rows["north"].Payload) != before
	})
	put("5.yaml", strings.Replace(named("other", "hush"), "token: hush", "tokenFile: /etc/passwd", 1))
	faulty("tokenFile")
	put("6.yaml", named("west", "hush"))
	faulty("west is the id of this cluster")
	if err := os.Remove(filepath.Join(dir, "1.yaml")); err != nil {
		t.Fatal(err)
	}
	is("another file has it", map[string]string{"east": "4.yaml", "north": "2.yml"})
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "can't be read; what is known stays")
	})
	is("nothing can be read", map[string]string{"east": "4.yaml", "north": "2.yml"})
}

func TestDirectoryThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + ".missing"} {
		c := Config{Directory: dir}
		var at *sdk.FieldError
		if err := c.directory(); !errors.As(err, &at) || at.Field != "directory" {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
