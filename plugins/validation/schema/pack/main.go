// Command pack writes crds.zip: the OpenAPI schemas of the custom resource definitions that come
// with the modules istio.io/api and sigs.k8s.io/gateway-api (its experimental channel, which has
// all fields), and those of Ingress and IngressClass (ingress.yaml), without descriptions. It is
// run in the repository's root, by make generate.
package main

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const target = "plugins/validation/schema/crds.zip"

// origin is a module with definitions: files that the pattern finds in it.
type origin struct{ module, pattern, authors string }

var origins = []origin{
	{"istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml", "the Istio Authors"},
	{"sigs.k8s.io/gateway-api", "config/crd/experimental/gateway.networking.*s.yaml", "the Kubernetes Authors"},
}

// ingress are definitions of kinds for which there are none elsewhere.
//
//go:embed ingress.yaml
var ingress []byte

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	var notes []string
	for _, o := range origins {
		version, texts, err := o.read()
		if err != nil {
			return err
		}
		for _, text := range texts {
			if err := pack(w, text); err != nil {
				return err
			}
		}
		notes = append(notes, fmt.Sprintf("of %s in %s %s, by %s", o.pattern, o.module, version, o.authors))
	}
	if err := pack(w, ingress); err != nil {
		return err
	}
	note := "Schemas " + strings.Join(notes, ", and ") + ", without descriptions. Licensed under the Apache License, Version 2.0."
	if err := w.SetComment(note); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, b.Bytes(), 0o644)
}

// read returns the module's version and the texts of its files, in order of their names.
func (o origin) read() (version string, texts [][]byte, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", o.module).Output()
	if err != nil {
		return "", nil, fmt.Errorf("go list -m %s: %w", o.module, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	files, err := filepath.Glob(filepath.Join(dir, o.pattern))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no %s", o.module, o.pattern)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, text)
	}
	return version, texts, err
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

// pack adds an entry GROUP/KIND/VERSIONS.json for each schema; versions that share one are parted
// by commas.
func pack(w *zip.Writer, definitions []byte) error {
	for document := range strings.SplitSeq(string(definitions), "\n---\n") {
		if err := add(w, document); err != nil {
			return err
		}
	}
	return nil
}

// add writes the schemas of one definition.
func add(w *zip.Writer, document string) error {
	var d definition
	if err := yaml.Unmarshal([]byte(document), &d); err != nil {
		return err
	}
	if d.Spec.Group == "" {
		return nil // a policy of the API server's, or a comment
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
