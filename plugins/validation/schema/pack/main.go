// Command pack writes crds.zip: the OpenAPI schemas of the custom resource definitions that come
// with the module istio.io/api, without descriptions. It is run in the repository's root, by make
// generate.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	module = "istio.io/api"
	source = "kubernetes/customresourcedefinitions.gen.yaml"
	target = "plugins/validation/schema/crds.zip"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("go list -m %s: %w", module, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	text, err := os.ReadFile(filepath.Join(dir, source))
	if err != nil {
		return err
	}
	packed, err := pack(version, text)
	if err != nil {
		return err
	}
	return os.WriteFile(target, packed, 0o644)
}

// definition is what is used of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// pack returns an archive with an entry GROUP/KIND/VERSIONS.json for each schema; versions that
// share one are parted by commas.
func pack(version string, definitions []byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	note := fmt.Sprintf("Schemas of %s in %s %s, without descriptions. Licensed under the Apache License, Version 2.0, by the Istio Authors.",
		source, module, version)
	if err := w.SetComment(note); err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(string(definitions), "\n---\n") {
		if err := add(w, document); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// add writes the schemas of one definition.
func add(w *zip.Writer, document string) error {
	var d definition
	if err := yaml.Unmarshal([]byte(document), &d); err != nil {
		return err
	}
	var order []string
	versions := make(map[string][]string)
	for _, v := range d.Spec.Versions {
		bare(v.Schema.Schema)
		text, err := json.Marshal(v.Schema.Schema)
		if err != nil {
			return err
		}
		if versions[string(text)] == nil {
			order = append(order, string(text))
		}
		versions[string(text)] = append(versions[string(text)], v.Name)
	}
	for _, text := range order {
		entry, err := w.Create(d.Spec.Group + "/" + d.Spec.Names.Kind + "/" + strings.Join(versions[text], ",") + ".json")
		if err != nil {
			return err
		}
		if _, err := entry.Write([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// bare takes the descriptions out of a schema.
func bare(schema map[string]any) {
	delete(schema, "description")
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if inner, ok := schema[key].(map[string]any); ok {
			bare(inner)
		}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := schema[key].([]any)
		for _, each := range list {
			if inner, ok := each.(map[string]any); ok {
				bare(inner)
			}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, each := range properties {
		if inner, ok := each.(map[string]any); ok {
			bare(inner)
		}
	}
}
