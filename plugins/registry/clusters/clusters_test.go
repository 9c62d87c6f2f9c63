package clusters

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// kubeconfig is one with a token.
func kubeconfig(token string) string {
	return "{current-context: a, clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a, user: {token: " + token +
		"}}], contexts: [{name: a, context: {cluster: a, user: a}}]}"
}

func object(name string, age int, data ...string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "istio-system", CreationTimestamp: metav1.NewTime(time.Unix(1000-int64(age), 0))},
		Data:       map[string][]byte{},
	}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

// recorder is a publisher that keeps rows.
type recorder struct {
	sdk.Publisher
	rows map[string]map[string]string
	logs []string
}

func (r *recorder) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if r.rows[table] == nil {
		r.rows[table] = map[string]string{}
	}
	for _, row := range upserts {
		r.rows[table][row.Key] = string(row.Payload)
	}
	for _, key := range deletes {
		delete(r.rows[table], key)
	}
	return nil
}

func (r *recorder) Log(_ sdk.Level, text string, _ ...any) { r.logs = append(r.logs, text) }

func newPublication() (*publication, *recorder) {
	r := &recorder{rows: map[string]map[string]string{}}
	return &publication{config: &Config{Cluster: "west"}, out: r, served: map[string]Cluster{}, faultSet: kinds.NewFaultSet(time.Now)}, r
}

// is compares the published clusters with ID FROM, and the faults' messages with pieces of them.
func (r *recorder) is(t *testing.T, what string, clusters []string, faults ...string) {
	t.Helper()
	got := []string{}
	for key, payload := range r.rows[Table] {
		var c Cluster
		if err := json.Unmarshal([]byte(payload), &c); err != nil || c.ID != key || len(c.Hash) != 64 {
			t.Errorf("%s: %s %s %v", what, key, payload, err)
		}
		got = append(got, c.ID+" "+c.From)
	}
	slices.Sort(got)
	if diff := cmp.Diff(clusters, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
	var said []string
	for _, payload := range r.rows[kinds.FaultTable] {
		said = append(said, payload)
	}
	if len(said) != len(faults) {
		t.Errorf("%s: %d faults, not %d: %v", what, len(said), len(faults), said)
	}
	for _, f := range faults {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, f) }) {
			t.Errorf("%s: no fault with %q among %v", what, f, said)
		}
	}
	for _, text := range append(said, r.logs...) {
		if strings.Contains(text, "hush") {
			t.Errorf("%s: a token is told: %s", what, text)
		}
	}
}

// TestPublish: each key of each Secret is a cluster; what is wrong is told, and takes nothing away
// that was right.
func TestPublish(t *testing.T) {
	p, r := newPublication()
	publish := func(objects ...*corev1.Secret) {
		t.Helper()
		var secrets []*secret
		for _, o := range objects {
			kept, ok := p.config.lean(o).(*secret)
			if !ok || p.config.lean(kept) != any(kept) || strings.Contains(fmt.Sprintf("%+v", kept), "hush") {
				t.Fatalf("what is kept is %+v", kept)
			}
			secrets = append(secrets, kept)
		}
		if err := p.publish(inSecrets(secrets)); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	r.is(t, "nothing", []string{})
	publish(object("b", 1, "east", kubeconfig("hush"), "north", kubeconfig("hush2")), object("a", 1, "west", kubeconfig("hush")))
	all := []string{"east istio-system/b/east", "north istio-system/b/north"}
	r.is(t, "two, and its own", all, "west is the id of this cluster")
	hash := r.rows[Table]["east"]

	publish(object("b", 1, "east", "hush: [", "north", kubeconfig("hush2")))
	r.is(t, "one is broken", all, "what stood there before is kept")
	if r.rows[Table]["east"] != hash {
		t.Error("what is broken has another hash")
	}
	publish(object("b", 1, "east", kubeconfig("hush3"), "north", kubeconfig("hush2")))
	r.is(t, "it is repaired", all)
	if r.rows[Table]["east"] == hash {
		t.Error("another token has the same hash")
	}
	publish(object("b", 1, "east", kubeconfig("hush3")), object("c", 0, "east", kubeconfig("other"), "broken", "x"))
	r.is(t, "twice", []string{"east istio-system/b/east"}, "stands in istio-system/b/east, too", "left out")
	going := object("b", 1, "east", kubeconfig("hush3"))
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	publish(going, object("c", 0, "east", kubeconfig("other")))
	r.is(t, "the other one", []string{"east istio-system/c/east"})
	publish()
	r.is(t, "none", []string{})
}

func TestConfig(t *testing.T) {
	if c, err := parse([]byte(`{}`)); err != nil || c.Namespace != "istio-system" || c.Cluster != "Kubernetes" {
		t.Errorf("%+v, %v", c, err)
	}
	for config, field := range map[string]string{
		`{"cluster": ""}`: "cluster", `{"namespace": ""}`: "namespace", `{"qps": 0}`: "qps", `{"burst": 0}`: "burst", `{"more": 1}`: "more",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestReadme: the README's configs are ones.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	var set struct {
		Plugins []struct {
			Builtin string `json:"builtin"`
			Config  any    `json:"config"`
		} `json:"plugins"`
	}
	if err := yaml.Unmarshal([]byte(blocks[0].Text), &set); err != nil {
		t.Fatal(err)
	}
	for _, e := range set.Plugins {
		config, err := json.Marshal(e.Config)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := parse(config); e.Builtin == "registry/clusters" && err == nil && c.Cluster == "west" {
			return
		}
	}
	t.Errorf("none of %+v is taken", set.Plugins)
}
