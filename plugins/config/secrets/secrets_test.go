package secrets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// nowhere is a kubeconfig of an API server that isn't there.
const nowhere = `
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: x}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a`

func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadme: the example's config is taken. An API server that is away keeps nobody from serving,
// and answers nothing. Answers are tested with a real one in test/kube.
func TestReadme(t *testing.T) {
	readme.Example(t, 1)
	path := kubeconfig(t)
	h := plugintest.Start(t, Plugin(), map[string]any{"kubeconfig": path})
	account := secrets.Request{Account: secrets.Account{Namespace: "edge", Name: "gw"}}
	object := account
	object.Objects = []secrets.Object{{Kind: secrets.Secret, Namespace: "edge", Name: "web"}}
	h.Update(secrets.Requests,
		[]*sdk.Row{{Key: account.Key(), Payload: account.Encode()}, {Key: object.Key(), Payload: object.Encode()}, {Key: "broken", Payload: []byte("{")}})
	h.WaitLog(func(l sdk.Level, _ string, fields map[string]string) bool {
		return l == sdk.Warn && fields["server"] == "127.0.0.1:1"
	})
	if n := len(h.Rows(secrets.SecretTable)) + len(h.Rows(secrets.Rights)); n > 0 {
		t.Errorf("%d answers of nobody", n)
	}
}

// rowsOf are the rows of requests: an account's, if it has a name, and those of objects.
func rowsOf(account secrets.Account, objects ...secrets.Object) (rows []*sdk.Row) {
	q := secrets.Request{Account: account}
	if account.Name != "" {
		rows = append(rows, &sdk.Row{Key: q.Key(), Payload: q.Encode()})
	}
	for _, o := range objects {
		q.Objects = []secrets.Object{o}
		rows = append(rows, &sdk.Row{Key: q.Key(), Payload: q.Encode()})
	}
	return rows
}

// However many names are asked for, and whoever asks: an account is asked about once and followed
// by nothing, many names of a namespace are one watch, and others' secrets are as they were.
func TestManyAskFor(t *testing.T) {
	a := newAPI(t)
	a.mayList["edge:gw"] = true
	a.put("secrets", "edge", "web", "one")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.Replace(nowhere, "https://127.0.0.1:1", a.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), map[string]any{"kubeconfig": path})
	gw := secrets.Account{Namespace: "edge", Name: "gw"}
	right := func(of secrets.Account, allowed bool) {
		h.WaitRows(secrets.Rights, func(rows map[string]*sdk.Row) bool {
			row := rows[of.Key()]
			if row == nil {
				return false
			}
			r, err := secrets.DecodeRight(row)
			return err == nil && r.Allowed == allowed
		})
	}
	served := func(value string) {
		h.WaitRows(secrets.SecretTable, func(rows map[string]*sdk.Row) bool {
			if rows["edge/web"] == nil {
				return false
			}
			c, err := secrets.Decode(rows["edge/web"])
			return err == nil && string(c.Data["tls.crt"]) == value
		})
	}
	h.Update(secrets.Requests, rowsOf(gw, secret("edge", "web")))
	right(gw, true)
	served("one")
	nobody := secrets.Account{Namespace: "evil", Name: "nobody"}
	h.Update(secrets.Requests, rowsOf(nobody))
	right(nobody, false)
	watches(t, a, 1, 0)
	var all []secrets.Object
	for i := range 9900 {
		all = append(all, secrets.Object{Kind: secrets.ConfigMap, Namespace: "demo", Name: fmt.Sprintf("x%d", i)})
	}
	h.Update(secrets.Requests, rowsOf(nobody, all...)[1:])
	h.WaitRows(secrets.Absences, func(rows map[string]*sdk.Row) bool { return len(rows) == len(all) })
	watches(t, a, 1, 1)
	if _, _, reads := a.asked(); reads != 0 {
		t.Errorf("%s: what isn't there is read", a)
	}
	a.put("secrets", "edge", "web", "two")
	served("two")
	a.put("configmaps", "demo", "x77", "roots")
	h.WaitRows(secrets.ConfigMapTable, func(rows map[string]*sdk.Row) bool { return rows["demo/x77"] != nil })
	h.WaitRows(secrets.Absences, func(rows map[string]*sdk.Row) bool { return len(rows) == len(all)-1 })
	a.put("configmaps", "demo", "x77", "")
	h.WaitRows(secrets.ConfigMapTable, func(rows map[string]*sdk.Row) bool { return rows["demo/x77"] == nil })
	if a.mu.Lock(); a.reviews != 2 {
		t.Errorf("%d questions about two accounts", a.reviews)
	}
	a.mu.Unlock()
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"qps": 0}`: "qps", `{"remote": "a/b/c"}`: "cluster", `{"remote": "a", "cluster": "b"}`: "remote",
		`{"x": 1}`: "x", `{"kubeconfig": "/nowhere"}`: "kubeconfig",
	} {
		if got, _ := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q", config, got)
		}
	}
}

// What is kept of an object is what proxies may want, and nothing else of it.
func TestLean(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "edge", "annotations": map[string]any{"applied": "marked"}},
		"data":     map[string]any{"tls.crt": "Y2VydA==", "password": "bWFya2Vk"}, "type": "marked",
	}}
	kept, ok := lean(secrets.Secret, u).(*unstructured.Unstructured)
	if !ok || len(kept.GetAnnotations()) > 0 || kept.Object["type"] != nil {
		t.Fatalf("kept: %v", kept)
	}
	o := secrets.Object{Kind: secrets.Secret, Namespace: "edge", Name: "web"}
	if got, _ := contentOf(o, kept); len(got.Data) != 1 || string(got.Data["tls.crt"]) != "cert" {
		t.Errorf("content: %v", got)
	}
	roots := &unstructured.Unstructured{
		Object: map[string]any{"data": map[string]any{"ca.crt": "root", "tls.key": "key"}, "binaryData": map[string]any{"ca.crl": "bGlzdA=="}},
	}
	o.Kind = secrets.ConfigMap
	if got, _ := contentOf(o, roots); len(got.Data) != 2 || string(got.Data["ca.crt"]) != "root" || string(got.Data["ca.crl"]) != "list" {
		t.Errorf("content: %v", got)
	}
	large := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"ca.crt": string(make([]byte, 800<<10))}}}
	if got, absent := contentOf(o, large); absent == "" || got.Data != nil {
		t.Error("what is too large is published")
	}
}

// A yes counts for five minutes, a no for one; what can't be asked keeps what was said before.
func TestRights(t *testing.T) {
	now := time.Now()
	r := &right{account: secrets.Account{Namespace: "edge", Name: "gw"}}
	for _, c := range []struct {
		v       verdict
		changed bool
		wait    time.Duration
		allowed bool
	}{
		{verdict{err: errors.New("away")}, false, retryAfter, false},
		{verdict{allowed: false}, true, deniedFor, false},
		{verdict{allowed: true}, true, allowedFor, true},
		{verdict{allowed: true}, false, allowedFor, true},
		{verdict{err: errors.New("away")}, false, retryAfter, true},
		{verdict{allowed: false}, true, deniedFor, false},
	} {
		r.asked = true
		if changed := r.note(c.v, now); changed != c.changed || r.asked || r.due.Sub(now) != c.wait ||
			r.row().Allowed != c.allowed || (r.row().Reason == "") != c.allowed {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}
