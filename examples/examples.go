// Package examples has the sources of the example plugins, from which `coxswain plugins new` makes
// a project.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed */*.go registry-csv-python/registry.py patch-timeout-c/patch.c patch-timeout-rust/patch.rs
var files embed.FS

// Files returns the sources, by the names of their folders.
func Files() fs.FS { return files }
