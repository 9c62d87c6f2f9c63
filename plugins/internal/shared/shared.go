// Package shared finds, for tests, what is recorded outside of the tree: configurations with
// istiod's answers and Istio's fixtures.
package shared

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// Dir returns a folder below COXSWAIN_SHARED, which is absolute or relative to the module's root,
// by default ../shared. The test is skipped where the folder is absent.
func Dir(t testing.TB, path string) string {
	t.Helper()
	base := os.Getenv("COXSWAIN_SHARED")
	if base == "" {
		base = filepath.Join("..", "shared")
	}
	if !filepath.IsAbs(base) {
		base = filepath.Join(root(t), base)
	}
	dir := filepath.Join(base, path)
	if _, err := os.Stat(dir); err != nil {
		need.Missing(t, "%s is absent; set COXSWAIN_SHARED to the folder that has %s", dir, path)
	}
	return dir
}

// root is the folder of go.mod, above the package that is tested.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
}
