package inject

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// judgesSet judges objects, and has no API server.
const judgesSet = `plugins:
- {name: ca, kind: controller, builtin: controller/ca, config: {keep: memory, distribute: nowhere}}
- {name: validator, kind: controller, builtin: controller/validator}
`

// placeholder stands in states for a certificate, its key or who signed it.
var placeholder = regexp.MustCompile(`\$\{[^}]*\}`)

// judged is an object of a state that both are asked about.
type judged struct {
	where  string
	object map[string]any
}

// knownJudged are objects that are judged otherwise (docs/differences.md), by what of them one of
// both says; the other one lets them pass.
var knownJudged = []struct{ kind, istiod, ours string }{
	{kind: "UDPRoute", istiod: "unrecognized type"},
	{kind: "DestinationRule", istiod: "tableSize must be set for maglev"},
	{kind: "VirtualService", istiod: "http, tcp or tls must be provided"}, // one that says nothing
	{kind: "ServiceEntry", istiod: `endpoint address "" is not a valid FQDN`},
	{kind: "DestinationRule", ours: "port number 0 must be in the range"},
	{kind: "Telemetry", ours: "may not have a nil value"},
}

// TestJudgedAlike: each object of Istio's kinds and of the Gateway API in the states of
// test/parity, as it is and without each of its fields, is let pass or refused by ours as by a
// living istiod.
// What the API server refuses by its schemas ours may refuse, too: istiod is never asked.
func TestJudgedAlike(t *testing.T) {
	need.All(t)
	all := objectsOfStates(t)
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, system)
	j := judges{istiod: "http://" + kube.StartIstiod(t, c).HTTP, client: from(t, "127.0.0.1"), api: c.Client(t).Discovery().RESTClient(),
		known: map[string]int{}}
	file, at := filepath.Join(t.TempDir(), "plugins.yaml"), wait.Address(t)
	if err := os.WriteFile(file, []byte(judgesSet), 0o600); err != nil {
		t.Fatal(err)
	}
	mesh.Start(t, binary, "", "--plugins", file, "--httpsAddr", at).Ready(t)
	j.ours = "https://" + at
	seen := map[string]bool{}
	for _, o := range all {
		j.compare(t, o)
		for _, less := range without(o) {
			text, _ := json.Marshal([]any{less.object["kind"], less.object["apiVersion"], less.object["spec"]})
			if !seen[string(text)] {
				seen[string(text)] = true
				j.compare(t, less)
			}
		}
	}
	t.Logf("%d objects, as they are and in %d forms without a field: %d are refused by istiod, %d by schemas; %v differ as is known",
		len(all), len(seen), j.refused, j.bySchema, j.known)
	if j.refused < 100 || len(all) < 900 {
		t.Error("istiod refuses too little to compare")
	}
	for _, k := range knownJudged {
		if j.known[k.istiod+k.ours] == 0 {
			t.Errorf("%s: %q is no difference any more: take it from the list", k.kind, k.istiod+k.ours)
		}
	}
}

// judges are whom objects are shown.
type judges struct {
	istiod, ours string
	client       *http.Client
	api          rest.Interface

	refused, bySchema int
	known             map[string]int
}

// compare asks both about an object.
func (j *judges) compare(t *testing.T, o judged) {
	t.Helper()
	want, why, err := verdict(j.client, j.istiod, o.object)
	if err != nil {
		t.Fatalf("%s: istiod: %v", o.where, err)
	}
	got, ours, err := verdict(j.client, j.ours, o.object)
	if err != nil {
		t.Fatalf("%s: %v", o.where, err)
	}
	if !want {
		j.refused++
	}
	switch {
	case want == got:
	case want && !j.taken(t, o.object):
		j.bySchema++
	case j.isKnown(o, why, ours):
	default:
		t.Errorf("%s\n\tistiod: %v %s\n\tours:   %v %s", o.where, want, why, got, ours)
	}
}

// isKnown reports whether that one of both refuses an object is known.
func (j *judges) isKnown(o judged, istiod, ours string) bool {
	for _, k := range knownJudged {
		if o.object["kind"] == k.kind && strings.Contains(istiod, k.istiod) && strings.Contains(ours, k.ours) &&
			(istiod == "") == (k.istiod == "") && (ours == "") == (k.ours == "") {
			j.known[k.istiod+k.ours]++
			return true
		}
	}
	return false
}

// taken reports whether the API server, which asks nobody, takes an object.
func (j *judges) taken(t *testing.T, object map[string]any) bool {
	t.Helper()
	copied := maps.Clone(object)
	meta := maps.Clone(at(object, "metadata"))
	meta["namespace"] = "istio-system"
	copied["metadata"] = meta
	body, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	kind := strings.ToLower(fmt.Sprint(object["kind"]))
	plural := kind + "s"
	if stem, ok := strings.CutSuffix(kind, "y"); ok && !strings.HasSuffix(kind, "ay") {
		plural = stem + "ies"
	}
	path := fmt.Sprintf("/apis/%v/namespaces/istio-system/%s", object["apiVersion"], plural)
	err = j.api.Post().AbsPath(path).Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("%s: %v", path, err)
	}
	return err == nil
}

// without are forms of an object that each lack one field, or one entry of a list.
func without(o judged) (all []judged) {
	text, _ := json.Marshal(o.object)
	var places func(path []any, v any)
	places = func(path []any, v any) {
		if len(path) > 1 {
			var form map[string]any
			_ = json.Unmarshal(text, &form)
			remove(form, path)
			all = append(all, judged{fmt.Sprintf("%s without %v", o.where, path[1:]), form})
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				places(append(slices.Clip(path), k), v[k])
			}
		case []any:
			for i := range v {
				places(append(slices.Clip(path), i), v[i])
			}
		}
	}
	places([]any{"spec"}, o.object["spec"])
	return all
}

// remove takes away what stands at a path.
func remove(form map[string]any, path []any) {
	var in any = form
	var set func([]any)
	for n, step := range path {
		last := n == len(path)-1
		switch step := step.(type) {
		case string:
			m := in.(map[string]any)
			if last {
				delete(m, step)
				return
			}
			in, set = m[step], func(l []any) { m[step] = l }
		case int:
			l := in.([]any)
			if last {
				set(slices.Delete(l, step, step+1))
				return
			}
			in, set = l[step], func(inner []any) { l[step] = inner }
		}
	}
}

// objectsOfStates are those of the kinds that webhooks are about.
func objectsOfStates(t *testing.T) (all []judged) {
	t.Helper()
	files, _ := filepath.Glob("../parity/states/*/*/*.yaml")
	more, _ := filepath.Glob("../parity/states/*/clusters/*/*/*.yaml")
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, ".delete.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(placeholder.ReplaceAll(text, []byte("d29yZA==")))))
		for n := 0; ; n++ {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var o map[string]any
			if err == nil {
				err = yaml.Unmarshal(document, &o)
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			version, _ := o["apiVersion"].(string)
			if group, _, _ := strings.Cut(version, "/"); !strings.HasSuffix(group, ".istio.io") &&
				!strings.HasPrefix(group, "gateway.networking.") {
				continue
			}
			where := fmt.Sprintf("%s#%d %v %v", strings.TrimPrefix(file, "../parity/states/"), n, o["kind"], at(o, "metadata")["name"])
			all = append(all, judged{where, o})
		}
	}
	return all
}

// verdict asks a webhook whether an object may be created.
func verdict(client *http.Client, url string, object map[string]any) (allowed bool, why string, err error) {
	version, _ := object["apiVersion"].(string)
	group, version, _ := strings.Cut(version, "/")
	meta := at(object, "metadata")
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "1df28fbd-5f5f-11e8-bc74-36e6bb280816", "operation": "CREATE", "name": meta["name"], "namespace": meta["namespace"],
			"kind": map[string]any{"group": group, "version": version, "kind": object["kind"]}, "object": object,
		},
	})
	if err != nil {
		return false, "", err
	}
	said, err := client.Post(url+"/validate?timeout=10s", "application/json", bytes.NewReader(body))
	if err != nil {
		return false, "", err
	}
	defer func() { _ = said.Body.Close() }()
	var is admissionv1.AdmissionReview
	text, err := io.ReadAll(said.Body)
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	if err != nil || is.Response == nil {
		return false, "", fmt.Errorf("%s: %.300s %w", said.Status, text, err)
	}
	if is.Response.Result != nil {
		why = is.Response.Result.Message
	}
	return is.Response.Allowed, why, nil
}
