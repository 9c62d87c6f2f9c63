package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What everybody may write to, or exchange by its directory or by a link, is named; a directory
// whose files only their owners may take away is none.
func TestExposed(t *testing.T) {
	base := t.TempDir()
	make := func(name string, dir, file os.FileMode) string {
		path := filepath.Join(base, name, "program")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for at, mode := range map[string]os.FileMode{path: file, filepath.Dir(path): dir} {
			if err := os.Chmod(at, mode); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	open := make("open", 0o777, 0o755)
	link := filepath.Join(base, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		make("good", 0o755, 0o775): "",
		make("file", 0o755, 0o757): "file/program",
		open:                       "open",
		link:                       "open",
		make("sticky", 0o777|os.ModeSticky, 0o755): "",
		filepath.Join(base, "none"):                "",
	} {
		got := strings.Join(Exposed(path), "\n")
		if want == "" && got != "" || want != "" && !strings.HasPrefix(got, "everybody may write to "+filepath.Join(base, want)+" ") {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
