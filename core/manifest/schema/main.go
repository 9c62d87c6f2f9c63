// Command schema writes core/manifest/plugins.schema.json, the JSON Schema of plugins.yaml, from
// the struct types that the host reads it into and their comments. It is run in the repository's
// root, by make generate. `coxswain schema` adds what it knows of built-in plugins.
package main

import (
	"fmt"
	"os"
)

const (
	source = "core/manifest/entry.go"
	target = "core/manifest/plugins.schema.json"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("%w; run it in the root of the repository", err)
	}
	schema, err := generate(text)
	if err != nil {
		return err
	}
	return os.WriteFile(target, schema, 0o644)
}
