package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	"github.com/spf13/cobra"
)

// together are commands whose file is not named as they are, and that file.
var together = map[string]string{
	"plugins disable": "plugins_change.go",
	"plugins enable":  "plugins_change.go",
	"plugins restart": "plugins_change.go",
	"plugins test":    "plugins_test_command.go", // Go takes plugins_test.go for a test
}

// TestFilesOfCommands: a command is made in the file that is named as it is, or as the command
// above it. The runner of modules has its name from the package of its specification.
func TestFilesOfCommands(t *testing.T) {
	checked := 0
	tree(t, func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "coxswain ")
		if !c.HasParent() || strings.HasPrefix(name, "completion") || name == "help" || name == spec.Command {
			return
		}
		checked++
		made := regexp.MustCompile(`(Use: +|\(|\(p, )"` + regexp.QuoteMeta(c.Name()) + `\b`)
		files := []string{fileOf(name)}
		if above, _, ok := strings.Cut(name, " "); ok && together[name] == "" {
			files = append(files, fileOf(above))
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && made.Match(text) {
				return
			}
		}
		t.Errorf("%s is made in none of %v", name, files)
	})
	if checked < 30 {
		t.Errorf("%d commands were found only", checked)
	}
}

func fileOf(command string) string {
	if file := together[command]; file != "" {
		return file
	}
	return strings.NewReplacer(" ", "_", "-", "_").Replace(command) + ".go"
}
