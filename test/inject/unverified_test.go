package inject

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// tellingSet has much that is no caller's business, beside webhooks that everybody may ask.
const tellingSet = `plugins:
- {name: ca, kind: controller, builtin: controller/ca, config: {keep: file, file: ca.pem, distribute: nowhere}}
- {name: files, kind: config, builtin: config/file}
- {name: mesh, kind: config, builtin: config/mesh}
- {name: tokens, kind: authenticator, builtin: authenticator/token, config: {file: tokens.yaml}}
- {name: istio, kind: generator, builtin: generator/istio}
- name: injector
  kind: controller
  builtin: controller/injector
  allow: {env: [PLANTED]}
  config: {from: files, configFile: inject.yaml, valuesFile: values.json, nativeSidecars: "true"%s}
- {name: validator, kind: controller, builtin: controller/validator}
`

// planted is a secret of a name; the test finds it wherever it stands, in base64, too.
func planted(name string) string {
	return fmt.Sprintf("%s-planted-%x", name, sha256.Sum256([]byte(name)))
}

// secrets are what is planted, by name.
var secrets = []string{"environment", "value", "provider", "bank", "token", "backend"}

// telling are the files of tellingSet.
var telling = map[string]string{
	"values.json": fmt.Sprintf(`{"global": {"password": %q, "proxy": {"apiKey": %[1]q}}, "pilot": {"env": {"TOKEN": %[1]q}}}`, planted("value")),
	"mesh.yaml": fmt.Sprintf(`
extensionProviders:
- name: checks
  envoyExtAuthzHttp: {service: checks.mesh.svc.cluster.local, port: 80, headersToDownstreamOnDeny: [%[1]s]}
- name: traces
  opentelemetry: {service: traces.mesh.svc.cluster.local, port: 80, http: {path: /, headers: [{name: authorization, value: %[1]s}]}}
defaultConfig: {proxyMetadata: {OF_MESH: of-mesh}}
`, planted("provider")),
	"tokens.yaml": fmt.Sprintf("tokens: [{token: %s, identities: [spiffe://cluster.local/ns/bank/sa/edge]}]\n", planted("token")),
	"config/objects.yaml": fmt.Sprintf(`
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: own, namespace: bank}
spec: {environmentVariables: {OF_BANK: %s}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: own, namespace: bank}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND}
    patch: {operation: ADD, value: {name: x, connect_timeout: 1s, metadata: {filter_metadata: {x: {password: %s}}}}}
`, planted("bank"), planted("backend")),
}

// TestUnverifiedCaller: who shows no certificate, and says that he is an API server, learns what a
// pod becomes by the templates, the proxies' settings and values that are not secret; whatever he
// asks with, and however he fails, nothing secret of values, of the mesh, of another namespace, of
// the environment or of files is in an answer, though the templates ask for the environment.
func TestUnverifiedCaller(t *testing.T) {
	const asks = `policy: enabled
templates:
  sidecar: |
    metadata: {annotations: {found: {{ env "PLANTED" | quote }}, expanded: {{ expandenv "$PLANTED" | quote }}}}
    spec: {containers: [{name: istio-proxy, image: proxy, env: [{name: PROXY_CONFIG, value: {{ protoToJSON .ProxyConfig | quote }}}]}]}
`
	for name, c := range map[string]struct{ settings, more string }{
		"built-in templates": {"policy: enabled\n", ""}, "templates that ask for the environment": {asks, ""},
		"templates that may": {asks, ", env: [PLANTED]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnverified(t, c.settings, c.more)
			found := u.asks(t)
			if may := c.more != ""; may != found["environment"] {
				t.Errorf("the environment is told: %v", found["environment"])
			}
			if !found["bank"] {
				t.Error("of a pod of its own namespace a ProxyConfig says nothing: the test would not see what is told")
			}
		})
	}
}

// unverified asks a control plane without a certificate.
type unverified struct {
	url    string
	client *http.Client
	marks  map[string]leaks.Marks
}

func newUnverified(t *testing.T, settings, more string) *unverified {
	t.Helper()
	dir, at := t.TempDir(), wait.Address(t)
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"plugins.yaml": fmt.Sprintf(tellingSet, more), "inject.yaml": settings}
	for name, text := range telling {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u := &unverified{url: "https://" + at, client: from(t, "127.0.0.1"), marks: map[string]leaks.Marks{}}
	for _, name := range secrets {
		u.marks[name] = leaks.Marks{}
		u.marks[name].Of(name, []byte(planted(name)))
	}
	p := mesh.StartWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Environ(), "PLANTED="+planted("environment")) }, binary,
		filepath.Join(dir, "config"), "--plugins", filepath.Join(dir, "plugins.yaml"), "--meshConfig", filepath.Join(dir, "mesh.yaml"), "--httpsAddr", at)
	p.Ready(t)
	key, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || !bytes.Contains(key, []byte("PRIVATE KEY")) {
		t.Fatalf("the CA's key is not in its file: %v", err)
	}
	u.marks["key"] = leaks.Marks{"key": []byte("PRIVATE KEY")}
	wait.For(t, "a pod is injected into, by the mesh's settings", func() error {
		code, text := u.post(t, "/inject", podReview(t, "shop", nil, nil))
		if code != http.StatusOK || !strings.Contains(text, "istio-proxy") || !strings.Contains(text, "of-mesh") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	return u
}

// podReview is of a pod with annotations, and what else stands in it.
func podReview(t *testing.T, namespace string, annotations, more map[string]any) []byte {
	t.Helper()
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": namespace, "annotations": annotations},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
	}
	for name, value := range more {
		pod["spec"].(map[string]any)[name] = value
	}
	return review{namespace: namespace, pod: pod}.body(t)
}

// post returns all that is answered: the headers, the body, and what a patch in it says.
func (u *unverified) post(t *testing.T, path string, body []byte) (code int, all string) {
	t.Helper()
	said, err := u.client.Post(u.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err != nil {
		t.Fatal(err)
	}
	all = fmt.Sprint(said.Header) + "\n" + string(text)
	var is admissionv1.AdmissionReview
	if json.Unmarshal(text, &is) == nil && is.Response != nil {
		all += "\n" + string(is.Response.Patch)
	}
	return said.StatusCode, all
}

// asks asks for all sorts of things, and returns which secrets were told to whom they are no
// secrets: a pod of the namespace bank has its ProxyConfig, and one by templates that may read the
// environment what they read. All else is a fault.
func (u *unverified) asks(t *testing.T) (found map[string]bool) {
	t.Helper()
	found = map[string]bool{}
	patched, failed := 0, 0
	see := func(what, path string, body []byte, may ...string) {
		t.Helper()
		code, all := u.post(t, path, body)
		if strings.Contains(all, "istio-proxy") {
			patched++
		} else if code != http.StatusOK || strings.Contains(all, `"allowed":false`) {
			failed++
		}
		for name, marks := range u.marks {
			if len(marks.In([]byte(all))) == 0 {
				continue
			}
			if found[name] = true; name != "environment" && !strings.Contains(strings.Join(may, " "), name) {
				t.Errorf("%s: %s is in what is answered: %.2000s", what, name, all)
			}
		}
	}
	of := func(name string, value any) map[string]any { return map[string]any{name: value} }
	see("a pod", "/inject", podReview(t, "shop", nil, nil))
	see("a pod of bank", "/inject", podReview(t, "bank", nil, nil), "bank")
	for _, template := range []string{"sidecar", "gateway", "grpc-agent", "grpc-simple", "sidecar,gateway", "nosuch", "../values", "{{ .Values }}"} {
		see("the template "+template, "/inject", podReview(t, "shop", of("inject.istio.io/templates", template), nil))
	}
	// What stands in a pod is no template, be it taken or refused.
	const all = `{{ env "PLANTED" }}{{ toJson .Values }}{{ toJson .MeshConfig }}`
	for _, annotation := range []string{
		"proxy.istio.io/config", "proxy.istio.io/overrides", "sidecar.istio.io/proxyImage", "sidecar.istio.io/proxyCPU", "sidecar.istio.io/status",
		"sidecar.istio.io/userVolume", "sidecar.istio.io/userVolumeMount", "sidecar.istio.io/bootstrapOverride", "status.sidecar.istio.io/port",
		"traffic.sidecar.istio.io/includeOutboundIPRanges", "sidecar.istio.io/statsInclusionPrefixes", "prometheus.istio.io/merge-metrics",
	} {
		for _, value := range []string{all, "\n" + all, "'" + all, "\"", "$PLANTED", "{", "x: [", "*", "&a", "!!int x"} {
			see(annotation+" "+value, "/inject", podReview(t, "shop", of(annotation, value), nil))
		}
	}
	see("a config that names bank", "/inject", podReview(t, "shop", of("proxy.istio.io/config", `{"proxyMetadata": {"A": "$(PLANTED)"}}`), nil))
	see("a name", "/inject", podReview(t, "shop", nil, of("serviceAccountName", all)))
	see("odd containers", "/inject", podReview(t, "shop", nil, of("containers", "{{ .Values }}")))
	for _, path := range []string{"/inject/cluster/a/net/%7B%7B%20.Values%20%7D%7D", "/inject/PLANTED/$PLANTED", "/inject/:ENV:PLANTED=$PLANTED"} {
		see(path, path, podReview(t, "shop", nil, nil))
	}
	for _, path := range []string{"/", "/debug/configz", "/config_dump", "/injected", "/inject", "/validate", "/metrics", "/plugins", "/httpsReady"} {
		for _, body := range []string{"", "{}", "[", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`} {
			see(path+" "+body, path, []byte(body))
		}
	}
	for _, spec := range []string{`{"hosts":["a"]}`, `{"hosts":[1]}`, `{"hosts":["a"],"http":[{"match":[{"uri":{"regex":"("}}]}]}`, `"{{ .Values }}"`} {
		object := `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"own","namespace":"bank"},"spec":` + spec + `}`
		see("an object "+spec, "/validate", fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7",`+
			`"kind":{"group":"networking.istio.io","version":"v1","kind":"VirtualService"},`+
			`"namespace":"bank","operation":"UPDATE","object":%s,"oldObject":%[1]s}}`, object))
	}
	if patched < 20 || failed < 20 {
		t.Errorf("%d pods were injected into, and %d requests failed", patched, failed)
	}
	t.Logf("%d pods were injected into, %d requests failed", patched, failed)
	return found
}
