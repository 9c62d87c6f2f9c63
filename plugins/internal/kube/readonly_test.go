package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// TestReads: what is sent where nothing is to be written. Each verb of the API, and the requests
// that only ask though they are a POST, or do something though they are a GET.
func TestReads(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /api/v1/pods":                                        true,
		"GET /api/v1/namespaces/proxy/pods/a":                     true,
		"GET /api/v1/namespaces/exec":                             true,
		"GET /apis/networking.istio.io/v1":                        true,
		"GET /version":                                            true,
		"GET /":                                                   true,
		"HEAD /api/v1/pods":                                       true,
		"GET /api/v1/namespaces/a/pods/b/exec":                    false,
		"GET /api/v1/namespaces/a/pods/b/proxy":                   false,
		"GET /api/v1/nodes/n/proxy/run":                           false,
		"GET /api/v1/namespaces/a/services/b/proxy/x":             false,
		"POST /apis/authentication.k8s.io/v1/tokenreviews":        true,
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews": true,
		"POST /apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews":                   true,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                                 true,
		"POST /apis/authentication.k8s.io/v1/namespaces/a/b/tokenreviews":                             false,
		"POST /apis/other.example/v1/tokenreviews":                                                    false,
		"POST /api/v1/tokenreviews":                                                                   false,
		"POST /api/v1/namespaces/a/configmaps":                                                        false,
		"POST /api/v1/namespaces/a/serviceaccounts/b/token":                                           false,
		"POST /api/v1/namespaces/a/pods/b/eviction":                                                   false,
		"PUT /api/v1/namespaces/a/secrets/b":                                                          false,
		"PUT /apis/authentication.k8s.io/v1/tokenreviews":                                             false,
		"PATCH /api/v1/namespaces/a/events/b":                                                         false,
		"DELETE /api/v1/namespaces/a":                                                                 false,
		"PUT /apis/networking.istio.io/v1/namespaces/a/serviceentries/b/status":                       false,
		"POST /apis/coordination.k8s.io/v1/namespaces/istio-system/leases":                            false,
		"POST /apis/certificates.k8s.io/v1/certificatesigningrequests":                                false,
		"PUT /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/istio-validator":   false,
		"PATCH /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/istio-sidecar-inj": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := reads(method, path); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}

// answering is an API server that answers all requests with {}, and notes them; access leads there.
func answering(t *testing.T) (access *Access, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, q.Method+" "+q.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}`))
	}))
	t.Cleanup(s.Close)
	a := DefaultAccess()
	a.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "` + s.URL +
		`", insecure-skip-tls-verify: true}}], users: [{name: a, user: {token: t}}],
contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}`
	if err := os.WriteFile(a.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &a, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestReadOnly: clients of all sorts send no write where nothing is to be written, and say why; and
// send it otherwise.
func TestReadOnly(t *testing.T) {
	for value, writes := range map[string]bool{"": true, "false": true, "true": false} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(readOnlyVariable, value)
			access, asked := answering(t)
			client, err := access.Client("test")
			if err != nil {
				t.Fatal(err)
			}
			_, objects, err := access.Objects("test")
			if err != nil {
				t.Fatal(err)
			}
			pods, ctx := corev1.SchemeGroupVersion.WithResource("pods"), t.Context()
			object := &unstructured.Unstructured{
				Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "n"}},
			}
			_, created := objects.Resource(pods).Namespace("n").Create(ctx, object, metav1.CreateOptions{})
			_, status := client.Objects.Resource(pods).Namespace("n").UpdateStatus(ctx, object, metav1.UpdateOptions{})
			deleted := client.Metadata.Resource(pods).Namespace("n").Delete(ctx, "a", metav1.DeleteOptions{})
			posted := client.Core.Post().Namespace("n").Resource("pods").Body(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).Do(ctx).Error()
			for what, err := range map[string]error{"create": created, "status": status, "delete": deleted, "post": posted} {
				if forbids := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "--readOnly"); forbids == writes {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := client.Core.Get().Namespace("n").Resource("pods").Name("a").Do(ctx).Error(); err != nil {
				t.Errorf("get: %v", err)
			}
			want := 1
			if writes {
				want = 5
			}
			if got := asked(); len(got) != want {
				t.Errorf("the API server was asked %q", got)
			}
		})
	}
}

// TestOtherClusters: kubeconfigs of other clusters are held to it, too.
func TestOtherClusters(t *testing.T) {
	t.Setenv(readOnlyVariable, "true")
	a := DefaultAccess()
	config, err := a.Other(
		[]byte(`{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a, user: {token: t}}],
contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}`), "test",
	)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "https://127.0.0.1:1/api/v1/namespaces/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
		t.Error(answer.Status)
	}
}
