package seen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLook: a file can be looked at, and stays as it is, whatever it has.
func TestLook(t *testing.T) {
	for text, want := range map[string]string{
		head + "\n1 0 table key\n" + tail + "\n": "knows 1 objects",
		head + "\n1 0 table key\n":               "its end is missing",
		"coxswain first-seen 9\n":                "does not begin with",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Look(dir)
		if err != nil {
			found = err.Error()
		}
		if !strings.Contains(found, want) {
			t.Errorf("%q: %s", text, found)
		}
		if is, err := os.ReadFile(path); err != nil || string(is) != text {
			t.Errorf("it is %q now: %v", is, err)
		}
	}
	if found, err := Look(t.TempDir()); found != "" || err != nil {
		t.Errorf("of none: %q, %v", found, err)
	}
}
