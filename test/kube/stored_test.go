package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/mutated"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestStoredAsRead: some 500 objects that were edited at random are applied to an API server, and
// read from files. What it refuses is refused of files; what it stores has the rows that the files
// have, field by field, or is refused for what it means, wherever it comes from.
func TestStoredAsRead(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: b}}`)
	dir, stored, texts, tables := t.TempDir(), map[string]bool{}, map[string]string{}, map[string]bool{}
	rnd, client := rand.New(rand.NewPCG(46, 2)), c.Client(t).CoreV1().RESTClient()
	for _, object := range toEdit(t) {
		for range 42 {
			name := fmt.Sprintf("o-%03d", len(texts))
			object["metadata"].(map[string]any)["name"] = name
			text := mutated.Text(t, rnd, object)
			body, err := yaml.YAMLToJSON(text)
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, name+".yaml"), string(text))
			texts[name] = string(text)
			group, _, _ := strings.Cut(object["apiVersion"].(string), "/")
			tables[group+"/"+object["kind"].(string)] = true
			_, err = client.Post().AbsPath("/apis/"+object["apiVersion"].(string), "namespaces", "b", plural(object["kind"].(string))).
				Param("fieldValidation", "Ignore").SetHeader("Content-Type", "application/json").Body(body).Do(context.Background()).Raw()
			stored[name] = err == nil
		}
	}

	forms, meaning := refusedOf(t, dir)
	fromFiles := mesh.Start(t, program, "", "--configDir", dir)
	fromCluster := mesh.Start(t, program, "", "--readOnly", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	fromFiles.Ready(t)
	fromCluster.Ready(t)
	here, there := map[string]string{}, map[string]string{}
	for table := range tables {
		rowsOf(t, fromFiles, table, here)
		rowsOf(t, fromCluster, table, there)
	}
	same, refused, meant := 0, 0, 0
	for name, text := range texts {
		switch {
		case !stored[name] && forms[name] && here[name] == "":
			refused++
		case stored[name] && !forms[name] && here[name] == there[name] && meaning[name] == (here[name] == ""):
			if same++; meaning[name] {
				meant++
			}
		default:
			t.Errorf("stored: %v; of files: refused for its form %v, for its meaning %v; rows\n%s\n%s\nof\n%s", stored[name],
				forms[name], meaning[name], here[name], there[name], text)
		}
	}
	t.Logf("%d objects: %d are read as they are stored, %d of which are refused for what they mean; %d are refused by both", len(texts), same, meant, refused)
	if same-meant < 100 || refused < 100 {
		t.Error("too few of either")
	}
}

// toEdit are the objects of Istio's kinds that plugins/validation/schema is tried with, too. Rows
// of others are text, and get their defaults from who reads them.
func toEdit(t *testing.T) (all []map[string]any) {
	t.Helper()
	for _, file := range []string{"objects-1.yaml", "objects-2.yaml"} {
		whole, err := os.ReadFile(filepath.Join(envoy.Root(t), "plugins/validation/schema/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(whole), "\n---\n") {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(object["apiVersion"].(string), ".istio.io/") {
				all = append(all, object)
			}
		}
	}
	return all
}

// plural is a kind as it stands in the paths of an API server.
func plural(kind string) string {
	kind = strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(kind, "y"); ok && !strings.HasSuffix(kind, "way") {
		return stem + "ies"
	}
	return kind + "s"
}

// refusedOf are the objects of a folder that `coxswain validate` refuses: for their form, as an API
// server does, or for their meaning, as the webhook does.
func refusedOf(t *testing.T, dir string) (form, meaning map[string]bool) {
	t.Helper()
	out, _ := exec.Command(program, "validate", "-o", "json", dir).Output() // fails, as there is much wrong
	var faults []struct{ File, Code, Severity string }
	if err := json.Unmarshal(out, &faults); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	form, meaning = map[string]bool{}, map[string]bool{}
	for _, f := range faults {
		if f.Severity == "error" {
			name := strings.TrimSuffix(filepath.Base(f.File), ".yaml")
			form[name] = form[name] || strings.HasPrefix(f.Code, "COX1")
			meaning[name] = meaning[name] || !strings.HasPrefix(f.Code, "COX1")
		}
	}
	return form, meaning
}

// rowsOf adds the rows of a table, by the names of their objects.
func rowsOf(t *testing.T, p *mesh.Plane, table string, to map[string]string) {
	t.Helper()
	text, err := p.Get("/debug/rowz?table=" + url.QueryEscape(table))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Key     string
		Payload []byte
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if name, ok := strings.CutPrefix(r.Key, "b/"); ok {
			to[name] = fmt.Sprintf("a row of %x", r.Payload)
		}
	}
}
