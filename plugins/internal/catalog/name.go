package catalog

import (
	"path/filepath"
	"strings"
)

// Ignored reports whether a name is hidden, or an editor's: .a.yaml.swp, .#a.yaml, #a.yaml#,
// a.yaml~, and Kubernetes' ..data.
func Ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~")
}

// Wanted reports whether a file's name is one that is read.
func Wanted(path string) bool {
	if Ignored(filepath.Base(path)) {
		return false
	}
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
