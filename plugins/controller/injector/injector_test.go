package injector

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const method = pb.Webhook + path

func started(t *testing.T, config string) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), config)
	h.Send()
	h.WaitSynced()
	return h
}

// review is what an API server asks about a pod.
func review(namespace, pod string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7",`+
		`"kind":{"version":"v1","kind":"Pod"},"namespace":%q,"operation":"CREATE","object":%s}}`, namespace, pod)
}

const web = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},` +
	`"spec":{"containers":[{"name":"app","image":"app","resources":{}}]}}`

// answered asks about a pod, and returns what it becomes.
func answered(t *testing.T, h *plugintest.Harness, path string, body []byte) (a *admissionv1.AdmissionResponse, pod string) {
	t.Helper()
	called := h.Call(&pb.Call{Method: path, Request: body})
	r := admissionv1.AdmissionReview{}
	if called.Code != 0 || json.Unmarshal(called.Response, &r) != nil || r.Response == nil || r.Response.UID != "7" {
		t.Fatalf("%d %s %s", called.Code, called.Message, called.Response)
	}
	if r.Response.Patch == nil {
		return r.Response, ""
	}
	var changes []render.Change
	var object any
	if err := json.Unmarshal(r.Response.Patch, &changes); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(web), &object); err != nil {
		t.Fatal(err)
	}
	is, err := render.Apply(object, changes)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(is)
	return r.Response, string(text)
}

// TestReviews: pods are patched as templates, the mesh, ProxyConfigs and the path say.
func TestReviews(t *testing.T) {
	h := started(t, `{"from": "files", "nativeSidecars": "true", "revision": "canary"}`)
	_, pod := answered(t, h, method+"/cluster/c2/net/a--slash--b?timeout=10s", review("shop", web))
	for _, part := range []string{
		`"name":"istio-proxy"`, `"restartPolicy":"Always"`, `"istio.io/rev":"canary"`,
		`{"name":"ISTIO_META_CLUSTER_ID","value":"c2"}`, `"topology.istio.io/network":"a/b"`,
	} {
		if !strings.Contains(pod, part) {
			t.Errorf("%s is not in %s", part, pod)
		}
	}
	for name, body := range map[string][]byte{
		"kube-system": review("kube-system", web), "host network": review("shop", `{"spec":{"hostNetwork":true}}`),
		"refuses": review("shop", `{"metadata":{"labels":{"sidecar.istio.io/inject":"false"}},"spec":{}}`),
	} {
		if a, _ := answered(t, h, method, body); !a.Allowed || a.Patch != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a, _ := answered(t, h, method,
		review("shop", `{"metadata":{"annotations":{"sidecar.istio.io/statusPort":"x","status.sidecar.istio.io/port":"x"}},"spec":{}}`)); a.Allowed ||
		!strings.Contains(a.Result.Message, "status.sidecar.istio.io/port") {
		t.Errorf("%+v", a)
	}
	for _, body := range []string{"", "{}", "[", strings.Repeat("[", 1000)} {
		if c := h.Call(&pb.Call{Method: method, Request: []byte(body)}); c.Code != codeInvalidArgument {
			t.Errorf("%.20q: %d %s", body, c.Code, c.Message)
		}
	}
	if c := h.Call(&pb.Call{Method: pb.Webhook + "/injected", Request: review("shop", web)}); c.Code == 0 {
		t.Error("another path is answered")
	}
}

// TestTheLastGoodOneCounts: files are followed, what is wrong is shown, and what was good counts.
func TestTheLastGoodOneCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inject.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {template: first}}'}\n")
	h := started(t, fmt.Sprintf(`{"from": "files", "nativeSidecars": "true", "configFile": %q, "look": "10ms"}`, file))
	has := func(word string) {
		t.Helper()
		if _, pod := answered(t, h, method, review("shop", web)); !strings.Contains(pod, `"template":"`+word+`"`) {
			t.Errorf("%s is not in %s", word, pod)
		}
	}
	has("first")
	write("policy: enabled\ntemplates: {sidecar: '{{.x'}\n")
	h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 })
	has("first")
	write("policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {template: second}}'}\n")
	h.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
	has("second")
}

func TestVariables(t *testing.T) {
	for text, want := range map[string]string{
		"": "map[]", "/cluster/a/net/b/": "map[ISTIO_META_CLUSTER_ID:a ISTIO_META_NETWORK:b]", "/odd": "map[]", "/foo/b%2Fc?x=y": "map[FOO:b/c]",
		"/:ENV:cluster=a:ENV:x=y=z:ENV:=n": "map[ISTIO_META_CLUSTER_ID:a X:y=z]",
	} {
		if got, err := variables(text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"/a%zz/b", strings.Repeat("/a/b", 1) + many(40)} {
		if got, err := variables(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func many(n int) (out string) {
	for i := range n {
		out += fmt.Sprintf("/v%d/x", i)
	}
	return out
}

// TestConform: it is a plugin as the contract has it.
func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{
		Kind: "controller", Config: `{"from": "files", "nativeSidecars": "true"}`, BadConfigs: []any{`{"from": "paper"}`, `{"configFile": "x"}`},
	}, plugintest.Memory(Plugin()))
}

// TestReadme: the example's config is one, and its file is read.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	t.Chdir(t.TempDir())
	if err := os.WriteFile(blocks[1].Name(), []byte(blocks[1].Text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := started(t, string(config))
	if _, pod := answered(t, h, method, review("shop", web)); !strings.Contains(pod, "istio-proxy") {
		t.Error(pod)
	}
	if a, _ := answered(t, h, method, review("shop", `{"metadata":{"labels":{"batch":"yes"}},"spec":{}}`)); a.Patch != nil {
		t.Error("a pod is injected into that neverInjectSelector matches")
	}
}

// TestNewestState: a pod is told what the core had told before it asked.
func TestNewestState(t *testing.T) {
	h := started(t, `{"from": "files", "nativeSidecars": "true"}`)
	for i := range 50 {
		m := meshdefaults.Defaults()
		m.DefaultConfig.ProxyMetadata = map[string]string{"TURN": fmt.Sprint(i)}
		payload, err := kinds.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		h.Send(plugintest.Rows{Table: state.Mesh, Upserts: []*sdk.Row{{Key: state.Mesh, Payload: payload}}})
		if _, pod := answered(t, h, method, review("shop", web)); !strings.Contains(pod, fmt.Sprintf(`{"name":"TURN","value":"%d"}`, i)) {
			t.Fatalf("turn %d: %s", i, pod)
		}
	}
}

// TestNodes: a pod's own node counts where it is known, all of them otherwise, however often an
// informer leans them.
func TestNodes(t *testing.T) {
	var all []any
	for name, kubelet := range map[string]string{"young": "v1.35.2", "old": "v1.32.9-gke.1", "odd": ""} {
		var o any = &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "resourceVersion": "1", "labels": map[string]any{"many": "x"}},
			"status":   map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet, "osImage": "x"}},
		}}
		for range 2 {
			var err error
			if o, err = leanNode(o); err != nil {
				t.Fatal(err)
			}
		}
		if text := fmt.Sprint(o); strings.Contains(text, "many") || strings.Contains(text, "osImage") {
			t.Errorf("more is kept than counts: %s", text)
		}
		all = append(all, o)
	}
	n := newNodes(all)
	for name, want := range map[string]bool{"young": true, "old": false, "odd": false, "strange": false, "": false} {
		if n.native(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	young := slices.DeleteFunc(all, func(o any) bool { return o.(*unstructured.Unstructured).GetName() != "young" })
	if n = newNodes(young); !n.native("") || !n.native("young") || !n.native("strange") {
		t.Errorf("all of them know native sidecars: %+v", n)
	}
	if n = newNodes(nil); !n.native("") {
		t.Error("there is no node that doesn't know them")
	}
}
