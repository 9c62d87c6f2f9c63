package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestLean: what is kept of an object is what a file would say of it.
func TestLean(t *testing.T) {
	sent := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: web
  namespace: shop
  uid: 6ff8
  resourceVersion: "7"
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: web}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
  managedFields: [{manager: kubectl}]
spec: {hosts: [web.example], resolution: DNS}
status: {addresses: [{value: 240.240.0.1}]}`), &sent.Object); err != nil {
		t.Fatal(err)
	}
	got, err := lean(sent)
	o, ok := got.(*object)
	if err != nil || !ok || o.Name != "web" || o.Namespace != "shop" || o.ResourceVersion != "7" || o.Labels["app"] != "web" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, gone := range []string{"uid", "6ff8", "managedFields", "last-applied", "resourceVersion"} {
		if strings.Contains(string(o.text), gone) {
			t.Errorf("%s is kept: %s", gone, o.text)
		}
	}
	docs := kinds.Read("x", o.text)
	if len(docs) != 1 || docs[0].Row == nil || len(docs[0].Faults) > 0 {
		t.Fatalf("%+v", docs)
	}
	row := docs[0].Row
	if diff := cmp.Diff(map[string]string{"note": "kept", kinds.AutoAddresses: `[{"value":"240.240.0.1"}]`}, row.Annotations); diff != "" || row.Created == 0 {
		t.Error(diff, row.Created)
	}
	if again, err := lean(o); again != got || err != nil {
		t.Error(again, err)
	}
}

func TestRevisions(t *testing.T) {
	for _, c := range []struct {
		own, label string
		concerns   bool
	}{{"", "", true}, {"", "green", true}, {"blue", "", true}, {"blue", "blue", true}, {"blue", "green", false}} {
		labels := map[string]string{}
		if c.label != "" {
			labels["istio.io/rev"] = c.label
		}
		if got := (&publication{revision: c.own}).concerns(labels); got != c.concerns {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{`{"qps": 0}`: "qps", `{"burst": 0}`: "burst", `{"kubeconfi": "x"}`: "kubeconfi", `{"revision": 1}`: "revision"} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := connect(Config{Access: kube.Access{Kubeconfig: filepath.Join(t.TempDir(), "none")}}); err == nil {
		t.Error("a kubeconfig that isn't there is taken")
	}
}

// TestReadme: the README's config is one, and makes clients.
func TestReadme(t *testing.T) {
	blocks, err := readme.Blocks("README.md")
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	config, err := blocks[0].Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(config)
	if err != nil || c.Revision != "blue" {
		t.Fatalf("%+v, %v", c, err)
	}
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(c.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(c); err != nil {
		t.Error(err)
	}
}
