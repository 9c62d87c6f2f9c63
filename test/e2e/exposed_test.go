package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestExposedFiles: that everybody may write to plugins.yaml or to a program is shown, and said
// when the plugin is started.
func TestExposedFiles(t *testing.T) {
	b := newBench(t, swapSet)
	if text, ok := b.plugins("show", "memory"); !ok || strings.Contains(text, "everybody may write") {
		t.Errorf("of good files it says\n%s", text)
	}
	copied := filepath.Join(b.dir, "copy")
	place(t, copied, b.says(program))
	for path, mode := range map[string]os.FileMode{copied: 0o777, b.file: 0o646} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	b.must("switched", "swap", "memory", "--process", "./copy plugin registry/memory")
	text, _ := b.plugins("show", "memory")
	for _, path := range []string{copied, b.file} {
		if !strings.Contains(text, "everybody may write to "+path+" ") {
			t.Errorf("nothing of %s in\n%s", path, text)
		}
	}
	wait.For(t, "the log says so", func() error {
		if !strings.Contains(b.plane.Log(), "others can change what the plugin runs") {
			return fmt.Errorf("it ends with %s", b.plane.LastLines(3))
		}
		return nil
	})
}
