package parity

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
)

// place is one of a state's clusters: where it stands in the folder, and the cluster that has its
// objects.
type place struct {
	*cluster
	dir string
}

// places are the clusters of a state: the first, which both control planes read, and by name those
// of which it has Secrets.
func (c *cluster) places(t *testing.T, dir string) []place {
	t.Helper()
	all := []place{{c, dir}}
	found, _ := filepath.Glob(filepath.Join(dir, "clusters", "*"))
	for i, at := range found {
		if i == len(c.others) {
			c.others = append(c.others, newCluster(c.of))
		}
		all = append(all, place{c.others[i], at})
	}
	return all
}

// replacements makes what is written in manifests into what it stands for: kubeconfigs, and where
// statuses are compared a certificate, its key and its root. All are ready for `data` of a Secret
// but the root, which is text for a ConfigMap in double quotes.
func replacements(t *testing.T, places []place, how start) *strings.Replacer {
	t.Helper()
	var words []string
	if how.Statuses {
		words = certificate(t)
	}
	for _, p := range places[1:] {
		words = append(words, kubeconfigOf(p), base64.StdEncoding.EncodeToString([]byte(p.Remote(t, ""))))
	}
	return strings.NewReplacer(words...)
}

// certificate makes one, and returns the words that stand for its parts with these.
func certificate(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	authority.New(t).IssueLocal(t, dir)
	read := func(file string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	secret := func(file string) string { return base64.StdEncoding.EncodeToString(read(file)) }
	root := strings.ReplaceAll(string(read("root-cert.pem")), "\n", "\\n")
	return []string{"${certificate}", secret("cert-chain.pem"), "${key}", secret("key.pem"), "${root}", root}
}

// kubeconfigOf stands for a cluster's kubeconfig in manifests.
func kubeconfigOf(p place) string { return "${kubeconfig " + filepath.Base(p.dir) + "}" }

// secrets are those of the clusters whose kubeconfig no manifest of the state has.
func secrets(t *testing.T, places []place) string {
	t.Helper()
	var out []string
	for _, p := range places[1:] {
		if !mentions(t, places[0].dir, kubeconfigOf(p)) {
			name := filepath.Base(p.dir)
			out = append(out, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: remote-%s, namespace: istio-system, labels: {istio/multiCluster: 'true'}}, data: {%s: '%s'}}",
				name, name, kubeconfigOf(p)))
		}
	}
	return strings.Join(out, "\n---\n")
}

// mentions reports whether a manifest of the first cluster has a text.
func mentions(t *testing.T, dir, text string) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "[oe]*", "*.yaml"))
	return slices.ContainsFunc(files, func(f string) bool {
		is, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(is), text)
	})
}

// files are the manifests of a folder of each of the clusters, by their names: those of one name
// belong together.
func files(places []place, folder string) (names []string, of map[string][]placed) {
	of = map[string][]placed{}
	for _, p := range places {
		found, _ := filepath.Glob(filepath.Join(p.dir, folder, "*.yaml"))
		for _, path := range found {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".yaml"), ".delete")
			if of[name] == nil {
				names = append(names, name)
			}
			of[name] = append(of[name], placed{p.cluster, path})
		}
	}
	slices.Sort(names)
	return names, of
}

// joined are the manifests of a folder of each of the clusters, behind a text, as one file of each.
func joined(t *testing.T, places []place, folder, text string) (out []placed) {
	t.Helper()
	for _, p := range places {
		all := []string{text}
		found, _ := filepath.Glob(filepath.Join(p.dir, folder, "*.yaml"))
		for _, path := range found {
			more, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(more))
		}
		path := filepath.Join(t.TempDir(), folder+".yaml")
		if err := os.WriteFile(path, []byte(strings.Join(all, "\n---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, placed{p.cluster, path})
	}
	return out
}

// placed is a manifest, and the cluster that it is for.
type placed struct {
	in   *cluster
	path string
}
