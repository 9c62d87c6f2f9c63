package inject

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Plain(&binary, m.Run) }

const system = "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n"

// shop is a namespace as OpenShift has it.
const shop = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
  annotations: {openshift.io/sa.scc.uid-range: 1000620000/10000, openshift.io/sa.scc.supplemental-groups: "2000-2999,5000/10"}
`

// least is which part of the patched pods must be equal; otherwise are those that are not, and why
// (docs/differences.md).
const least = 0.99

var otherwise = map[string]string{
	"an older node, our templates: merge-probers#0 Deployment/hello": "the probe of a proxy that was injected before",
}

// TestLive asks both about the same pods.
func TestLive(t *testing.T) {
	need.All(t)
	all := reviews(t)
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, system+"---\n"+shop)
	equal, patched, bare := 0, 0, 0
	found := map[string]bool{}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			nodes(t, c, s.kubelets)
			configured := s.render(t)
			c.Apply(t, configured+s.withObjects())
			istiod := kube.StartIstiod(t, c, append(slices.Clone(s.env), "ISTIOD_CUSTOM_HOST=localhost")...)
			want := ask(t, all, "http://"+istiod.HTTP, http.DefaultClient)
			istiod.Stop()
			for _, templates := range []string{"the chart's templates", "our templates"} {
				if templates == "our templates" {
					c.Apply(t, withoutTemplates(t, configured))
				}
				got := s.ours(t, c, all)
				for i, r := range all {
					diff := differ(t, want[i], got[i], templates == "our templates")
					if want[i].patched || got[i].patched {
						patched++
					} else if diff == "" {
						bare++
						continue
					}
					if diff == "" {
						equal++
						continue
					}
					id := s.name + ", " + templates + ": " + r.name
					if otherwise[id] != "" {
						found[id] = true
						continue
					}
					t.Errorf("%s: -istiod +ours\n%s", id, diff)
				}
			}
			if s.objects != "" {
				c.Kubectl(t, "delete", "proxyconfigs", "--all", "-A")
			}
		})
	}
	t.Logf("%d of %d patched pods are equal; %d were refused or left alone by both", equal, patched, bare)
	if patched == 0 || float64(equal) < least*float64(patched) {
		t.Errorf("less than %.0f %% are equal", 100*least)
	}
	for id := range otherwise {
		if !found[id] {
			t.Errorf("%s is equal: take it from the list", id)
		}
	}
}

// node is a node of a number and a version.
const node = `apiVersion: v1
kind: Node
metadata: {name: node-%d}
status:
  nodeInfo: {kubeletVersion: %s, machineID: "", systemUUID: "", bootID: "", kernelVersion: "", osImage: "",
    containerRuntimeVersion: "", kubeProxyVersion: "", operatingSystem: "", architecture: ""}
`

// nodes has the cluster have nodes of these versions, and no others.
func nodes(t *testing.T, c *kube.Cluster, kubelets []string) {
	t.Helper()
	c.Kubectl(t, "delete", "nodes", "--all")
	for i, version := range kubelets {
		c.Apply(t, fmt.Sprintf(node, i, version))
	}
}

func (s told) withObjects() string {
	if s.objects == "" {
		return ""
	}
	return "\n---\n" + s.objects
}

// render are the ConfigMaps that Istio's chart makes of the values.
func (s told) render(t *testing.T) string {
	t.Helper()
	file, home := filepath.Join(t.TempDir(), "values.yaml"), t.TempDir()
	if err := os.WriteFile(file, []byte(s.values), 0o600); err != nil {
		t.Fatal(err)
	}
	helm := filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm")
	cmd := exec.Command(helm, "template", "istiod", filepath.Join(istio(t), "manifests/charts/istio-control/istio-discovery"),
		"--namespace", "istio-system", "--kube-version", "1.35.0", "--values", file,
		"--show-only", "templates/istiod-injector-configmap.yaml", "--show-only", "templates/configmap.yaml")
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			out = failed.Stderr
		}
		t.Fatalf("helm: %v: %s", err, out)
	}
	return string(out)
}

// istio is the folder of Istio's own module.
func istio(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "istio.io/istio")
	cmd.Dir = "../peer"
	out, err := cmd.Output()
	var is struct{ Dir string }
	if err != nil || json.Unmarshal(out, &is) != nil {
		t.Fatalf("istio.io/istio: %v %s", err, out)
	}
	return is.Dir
}

// withoutTemplates takes templates out that the chart has itself: those of the values stay.
func withoutTemplates(t *testing.T, text string) string {
	t.Helper()
	var all []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		var m corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			t.Fatal(err)
		}
		if m.Data["config"] == "" {
			continue
		}
		var config map[string]any
		if err := yaml.Unmarshal([]byte(m.Data["config"]), &config); err != nil {
			t.Fatal(err)
		}
		delete(config, "templates")
		delete(config, "template")
		is, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		m.Data["config"] = string(is)
		if is, err = yaml.Marshal(m); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(is))
	}
	if len(all) != 1 {
		t.Fatalf("there are %d configurations", len(all))
	}
	return all[0]
}

// ours asks our control plane, with what it is told in the same place as istiod.
func (s told) ours(t *testing.T, c *kube.Cluster, all []review) []answer {
	t.Helper()
	address := wait.Address(t)
	set := []string{"--registries", "Kubernetes"}
	if s.compliance != "" {
		set = []string{"--plugins", s.plugins(t)}
	}
	p := mesh.Start(t, binary, "", append(set, "--kubeconfig", c.Kubeconfig, "--httpsAddr", address, "--istiodCustomHost", "localhost")...)
	p.Ready(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	got := ask(t, all, "https://"+address, client)
	p.Kill()
	return got
}

// plugins is the file with the set for Kubernetes, whose injector is told what istiod is told by
// its environment.
func (s told) plugins(t *testing.T) string {
	t.Helper()
	var set struct {
		Plugins []map[string]any `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(coxswain.KubernetesSet(), &set); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(set.Plugins, func(p map[string]any) bool { return p["builtin"] == "controller/injector" })
	if at < 0 {
		t.Fatal("the set for Kubernetes has no injector")
	}
	delete(set.Plugins[at], "disabled")
	set.Plugins[at]["config"] = map[string]any{"compliancePolicy": s.compliance}
	text, err := yaml.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// answer is what becomes of a pod.
type answer struct {
	allowed, patched bool
	why              string
	pod              []byte
}

// ask asks a webhook about pods, in order.
func ask(t *testing.T, all []review, url string, client *http.Client) []answer {
	t.Helper()
	client.Timeout = 30 * time.Second
	out := make([]answer, len(all))
	wait.For(t, "the webhook answers", func() (err error) {
		out[0], err = one(t, all[0], url, client)
		return err
	})
	for i, r := range all {
		var err error
		if out[i], err = one(t, r, url, client); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
	return out
}

func one(t *testing.T, r review, url string, client *http.Client) (a answer, err error) {
	t.Helper()
	said, err := client.Post(url+"/inject"+r.path, "application/json", bytes.NewReader(r.body(t)))
	if err != nil {
		return a, err
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err != nil || said.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s: %.300s %w", said.Status, text, err)
	}
	var is admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &is); err != nil || is.Response == nil {
		return a, fmt.Errorf("%.300s: %w", text, err)
	}
	a.allowed = is.Response.Allowed
	if is.Response.Result != nil {
		a.why = is.Response.Result.Message
	}
	if a.pod, err = json.Marshal(r.pod); err != nil || len(is.Response.Patch) == 0 {
		return a, err
	}
	a.patched = true
	patch, err := jsonpatch.DecodePatch(is.Response.Patch)
	if err != nil {
		return a, err
	}
	a.pod, err = patch.Apply(a.pod)
	return a, err
}

// differ says in what two answers differ. anew: the templates are not the same.
func differ(t *testing.T, want, got answer, anew bool) string {
	t.Helper()
	if want.allowed != got.allowed {
		return fmt.Sprintf("allowed: %v (%s), %v (%s)", want.allowed, want.why, got.allowed, got.why)
	}
	if !want.allowed {
		return ""
	}
	var all []string
	compare("", plain(t, want.pod, anew), plain(t, got.pod, anew), &all)
	return strings.Join(all, "\n")
}

// compare notes each field that is not the same. Entries of lists that have names are found by
// these; that their order is another one is noted, too.
func compare(path string, want, got any, all *[]string) {
	if reflect.DeepEqual(want, got) {
		return
	}
	w, wantList := want.([]any)
	g, gotList := got.([]any)
	if wantList && gotList {
		wantNamed, wantNames := named(w)
		gotNamed, gotNames := named(g)
		if wantNamed != nil && gotNamed != nil {
			common := func(names []string, of map[string]any) string {
				return strings.Join(slices.DeleteFunc(names, func(n string) bool { return of[n] == nil }), " ")
			}
			if w, g := common(wantNames, gotNamed), common(gotNames, wantNamed); w != g {
				*all = append(*all, fmt.Sprintf("%s: order\n  - %s\n  + %s", path, w, g))
			}
			want, got = wantNamed, gotNamed
		}
	}
	wantMap, ok := want.(map[string]any)
	gotMap, also := got.(map[string]any)
	if !ok || !also {
		text := func(v any) string { out, _ := json.Marshal(v); return string(out) }
		*all = append(*all, fmt.Sprintf("%s\n  - %s\n  + %s", path, text(want), text(got)))
		return
	}
	keys := maps.Clone(wantMap)
	maps.Copy(keys, gotMap)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		compare(path+"/"+k, wantMap[k], gotMap[k], all)
	}
}

// named are a list's entries by their names; nil where one has none, or two have the same.
func named(list []any) (of map[string]any, names []string) {
	of = map[string]any{}
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || of[name] != nil {
			return nil, nil
		}
		of[name] = e
		names = append(names, name)
	}
	return of, names
}

// plain is a pod in a form that can be compared: fields that are unset and empty are the same.
func plain(t *testing.T, text []byte, anew bool) any {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i, c := range list {
			if anew && c.Name == "grpc-bootstrap-init" && len(c.Command) == 3 { // docs/differences.md: the script is written anew.
				c.Command[2] = "script"
			}
			for j := range list[i].Env {
				list[i].Env[j].Value = compact(list[i].Env[j].Value)
			}
		}
	}
	for k, v := range pod.Annotations {
		pod.Annotations[k] = compact(v)
	}
	for i := range pod.Spec.Volumes { // An API server has it so.
		if v := &pod.Spec.Volumes[i].VolumeSource; *v == (corev1.VolumeSource{}) {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
	out, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(out, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// compact writes JSON in one way, and drops spaces around texts.
func compact(text string) string {
	var v any
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, _ := json.Marshal(v)
	return string(out)
}
