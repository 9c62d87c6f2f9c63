package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
)

// settingsOf are settings whose only template is the given one.
func settingsOf(t *testing.T, template string, allowed render.Names) *render.Settings {
	t.Helper()
	text, err := json.Marshal(map[string]any{"policy": "enabled", "templates": map[string]string{"sidecar": template}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := render.Read(string(text), "", allowed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request() render.Request {
	m := meshdefaults.Defaults()
	return render.Request{Pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, Mesh: m, Proxy: m.DefaultConfig}
}

// TestTemplatesAreBounded: none runs for ever, writes without end, or asks for much at once.
func TestTemplatesAreBounded(t *testing.T) {
	for template, want := range map[string]string{
		`{{range $i, $_ := until 90000}}{{range until 90000}}{{end}}{{end}}`: "ran for longer",
		`{{define "x"}}{{template "x" .}}{{end}}{{template "x" .}}`:          "",
		`{{range until 90000}}{{repeat 1000 "x"}}{{end}}`:                    "writes more than",
		`{{repeat 1000000000 "x"}}`:                                          "more than 100000 of something",
		`{{until 1000000000}}`:                                               "more than 100000 of something",
		`{{range 2000000000}}{{end}}`:                                        "ran for longer",
		`{{.Spec.NoSuchField}}`:                                              "NoSuchField",
		`{{fail "no"}}`:                                                      "no",
		"spec: [":                                                            "no YAML",
		"spec: {containers: 5}":                                              "pod",
		"spec: {containers: [{name: istio-proxy, ports: x}]}":                "pod",
		"metadata: {labels: {x: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}}": "",
	} {
		_, err := settingsOf(t, template, render.Names{}).Inject(request())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: the error is %v; %q is to be in it", template, err, want)
		}
	}
}

// TestManyAtOnce: of pods that come at once each gets what the template says of it, however many
// are alike.
func TestManyAtOnce(t *testing.T) {
	s := settingsOf(t, `metadata: {annotations: {of: "{{.ObjectMeta.Name}}{{range until 50}}{{end}}"}}`, render.Names{})
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			r, name := request(), fmt.Sprintf("web-%d", n%50)
			r.Pod.Name = name
			switch pod, err := s.Inject(r); {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case pod.Annotations["of"] != name:
				t.Errorf("%s: %v", name, pod.Annotations)
			}
		})
	}
	all.Wait()
}

// TestSpelling: what a template spells as people do is what it is, and what no pod has is left out.
func TestSpelling(t *testing.T) {
	s := settingsOf(t, "Metadata: {annotations: {a: b}}\nmetadata: {labels: {c: d}}\n"+
		"spec: {nothing: 1, containers: [{name: istio-proxy, Image: proxy}]}\n", render.Names{})
	for range 2 {
		pod, err := s.Inject(request())
		if err != nil {
			t.Fatal(err)
		}
		if c := pod.Spec.Containers; pod.Annotations["a"] != "b" || pod.Labels["c"] != "d" || len(c) != 2 || c[0].Image+c[1].Image != "appproxy" {
			t.Errorf("%v %v %v", pod.Annotations, pod.Labels, c)
		}
	}
}

// TestSurroundings: templates see those variables alone that are allowed, and resolve no other
// names.
func TestSurroundings(t *testing.T) {
	t.Setenv("SHOWN", "yes")
	t.Setenv("HIDDEN", "secret")
	s := settingsOf(t,
		`metadata: {annotations: {a: "{{env "SHOWN" "no"}} {{env "HIDDEN" "no"}} {{expandenv "$SHOWN,$HIDDEN"}} {{getHostByName "localhost"}}."}}`,
		render.Names{Env: []string{"SHOWN"}})
	pod, err := s.Inject(request())
	if err != nil || pod.Annotations["a"] != "yes no yes, ." {
		t.Errorf("%v %v", pod.GetAnnotations(), err)
	}
}

// TestCalls: each place is found where a template asks for what is around the process, with what it
// asks for where that is written there.
func TestCalls(t *testing.T) {
	for text, want := range map[string][]string{
		`{{env "A" "no"}}`:                                                 {"env [A]"},
		`{{"A" | env}}`:                                                    {"env [A]"},
		`{{"no" | env "A"}}`:                                               {"env [A]"},
		`{{env .Revision}}`:                                                {"env []"},
		`{{expandenv "$B ${A}, $B"}}`:                                      {"expandenv [A B]"},
		`{{getHostByName "a.example" | quote}}`:                            {"getHostByName [a.example]"},
		`{{if (env "A")}}{{else}}{{env "B"}}{{end}}`:                       {"env [A]", "env [B]"},
		`{{range list (env "A")}}{{env "B"}}{{end}}`:                       {"env [A]", "env [B]"},
		`{{with (dict "a" (env "A")).a}}{{env "B"}}{{end}}`:                {"env [A]", "env [B]"},
		`{{$x := env "A"}}{{$x}}`:                                          {"env [A]"},
		`{{define "part"}}{{env "A"}}{{end}}{{template "part" (env "B")}}`: {"env [A]", "env [B]"},
		`{{expandenv "none"}}`:                                             nil,
		`{{.Spec.env}} env "A" {{quote "env"}}`:                            nil,
	} {
		s := settingsOf(t, text, render.Names{})
		var is []string
		for _, c := range s.Calls() {
			is = append(is, fmt.Sprint(c.Function, " ", c.Names))
		}
		slices.Sort(is)
		if !slices.Equal(is, want) {
			t.Errorf("%s: %q, not %q", text, is, want)
		}
	}
}

// TestBadConfigurations are refused as a whole, and it is said why.
func TestBadConfigurations(t *testing.T) {
	for config, want := range map[string]string{
		"policy: perhaps": "neither enabled nor disabled",
		"policy: enabled\ntemplates: {sidecar: '{{.x'}":                                          "templates: sidecar",
		"policy: enabled\ntemplates: {sidecar: '{{nosuch}}'}":                                    "nosuch",
		"policy: enabled\nneverInjectSelector: [{matchExpressions: [{key: a, operator: Near}]}]": "neverInjectSelector[0]",
		"[": "config",
		"policy: enabled\ntemplates: {" + many(101) + "}": "100 are the most",
		"policy: enabled #" + strings.Repeat("x", 1<<20):  "are the most",
	} {
		if _, err := render.Read(config, "", render.Names{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: the error is %v; %q is to be in it", config, err, want)
		}
	}
	if _, err := render.Read("", "[1]", render.Names{}); err == nil || !strings.Contains(err.Error(), "values") {
		t.Errorf("values: %v", err)
	}
}

func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("t%d: x", i))
	}
	return strings.Join(all, ", ")
}

// TestSelection: who gets a proxy, by annotation, label, selectors and policy.
func TestSelection(t *testing.T) {
	read := func(policy string) *render.Settings {
		s, err := render.Read("policy: "+policy+"\nneverInjectSelector: [{matchLabels: {without: x}}]\nalwaysInjectSelector: [{matchLabels: {with: x}}]\n",
			"", render.Names{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	enabled, disabled := read("enabled"), read("disabled")
	for _, c := range []struct {
		name      string
		namespace string
		change    func(*corev1.Pod)
		on, off   bool
	}{
		{"plain", "shop", func(*corev1.Pod) {}, true, false},
		{"host network", "shop", func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Labels = map[string]string{"sidecar.istio.io/inject": "true"}
		}, false, false},
		{"kube-system", "kube-system", func(p *corev1.Pod) { p.Labels = map[string]string{"sidecar.istio.io/inject": "true"} }, false, false},
		{"label", "shop", func(p *corev1.Pod) { p.Labels = map[string]string{"sidecar.istio.io/inject": "true"} }, true, true},
		{"label over annotation", "shop", func(p *corev1.Pod) {
			p.Labels = map[string]string{"sidecar.istio.io/inject": "false"}
			p.Annotations = map[string]string{"sidecar.istio.io/inject": "true"}
		}, false, false},
		{"never", "shop", func(p *corev1.Pod) { p.Labels = map[string]string{"without": "x", "with": "x"} }, false, false},
		{"always", "shop", func(p *corev1.Pod) { p.Labels = map[string]string{"with": "x"} }, true, true},
		{"nonsense", "shop", func(p *corev1.Pod) { p.Labels = map[string]string{"sidecar.istio.io/inject": "maybe"} }, true, false},
	} {
		pod := request().Pod
		c.change(pod)
		on, _ := enabled.Required(pod, c.namespace)
		off, why := disabled.Required(pod, c.namespace)
		if on != c.on || off != c.off || !off && why == "" {
			t.Errorf("%s: %v %v (%s)", c.name, on, off, why)
		}
	}
}

// TestTwice: a pod that is injected into again stays as it is.
func TestTwice(t *testing.T) {
	s, err := render.Read("", "", render.Names{})
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.Native = true
	once, err := s.Inject(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Pod = once
	twice, err := s.Inject(r)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := render.Changes(once, twice)
	if err != nil || len(changes) > 0 {
		t.Errorf("%v %v", changes, err)
	}
}

// TestChanges: they make one of the other, and leave alone what is unknown.
func TestChanges(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{`{"a":1}`, `{"a":2,"b":{"c":[1]}}`}, {`{"a":{"b/~c":1,"d":2}}`, `{"a":{"d":2}}`},
		{`{"l":[{"name":"a","x":1},{"name":"b"}]}`, `{"l":[{"name":"z"},{"name":"a","x":2},{"name":"y"},{"name":"b"}]}`},
		{`{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b"},{"name":"a"}]}`}, {`{"l":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"l":[{"name":"b"}]}`},
		{`{"l":[{"name":"a"}]}`, `{"l":[{"name":"b"}]}`}, {`{"l":[1,2]}`, `{"l":[2]}`}, {`{"l":[]}`, `{"l":[{"name":"a"}]}`}, {`{"l":[{"name":"a"}]}`, `{}`},
		{`{"l":[{"name":"a"},{"name":"a"}]}`, `{"l":[{"name":"a"}]}`}, {`{}`, `{"a":null,"f":false}`},
	} {
		var from, to any
		if json.Unmarshal([]byte(c.from), &from) != nil || json.Unmarshal([]byte(c.to), &to) != nil {
			t.Fatal(c)
		}
		changes, err := render.Changes(from, to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := render.Apply(from, changes)
		if err != nil || !reflect.DeepEqual(got, to) {
			t.Errorf("%s -> %s: %v %v by %v", c.from, c.to, got, err, changes)
		}
	}
}

// TestUnknownFieldsStay: what this program doesn't know of a pod is in what it prints.
func TestUnknownFieldsStay(t *testing.T) {
	s, err := render.Read("", "", render.Names{})
	if err != nil {
		t.Fatal(err)
	}
	o := &render.Offline{Settings: s, Mesh: meshdefaults.Defaults(), Native: true}
	var out bytes.Buffer
	in := "# note\napiVersion: v1\nkind: Service\nmetadata: {name: a} # stays\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, new: 1}\n" +
		"spec: {later: {a: 1}, containers: [{name: app, image: app, newer: 2}]}\n"
	if err := o.Stream([]byte(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# note", "# stays", "new: 1", "later:", "newer: 2", "name: istio-proxy"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, out.String())
		}
	}
	for in, want := range map[string]string{
		"a: [": "line 1", "kind: Pod\n---\nkind: Pod\nmetadata: {name: a}\nspec: 5\n": "spec is no object",
		"kind: Deployment\nmetadata: {name: a}\nspec: {template: []}":                                                       "spec.template is no object",
		"kind: Pod\nmetadata: {name: a, annotations: {proxy.istio.io/config: 'concurrency: many'}}\nspec: {containers: []}": "proxy.istio.io/config",
	} {
		if err := o.Stream([]byte(in), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v; %q is to be in it", in, err, want)
		}
	}
}
