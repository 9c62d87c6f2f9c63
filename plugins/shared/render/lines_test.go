package render

import (
	"strings"
	"testing"
	"time"

	mesh "istio.io/api/mesh/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestValuesStayInTheirLine: what pods say can't add to what a template makes of them, wherever the
// template takes it from.
func TestValuesStayInTheirLine(t *testing.T) {
	const evil = "x\"\n  - name: evil\n    image: \"evil"
	of := func(annotations map[string]string, env map[string]string) *Data {
		return &Data{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, ProxyConfig: &mesh.ProxyConfig{ProxyMetadata: env}}
	}
	for name, c := range map[string]struct {
		template string
		data     *Data
		want     string // empty: it is refused
	}{
		"an annotation":              {"image: \"{{ annotation .ObjectMeta `image` `auto` }}\"", of(map[string]string{"image": evil}, nil), ""},
		"an annotation, by its name": {"image: \"{{ index .ObjectMeta.Annotations `image` }}\"", of(map[string]string{"image": evil}, nil), ""},
		"in a list":                  {"{{ range .ObjectMeta.Annotations }}- {{ . }}{{ end }}", of(map[string]string{"image": evil}, nil), ""},
		"in a condition": {
			"{{ if .ObjectMeta.Annotations }}{{ with .ObjectMeta.Annotations }}- {{ .image }}{{ end }}{{ end }}",
			of(map[string]string{"image": evil}, nil), "",
		},
		"in what is defined": {
			"{{ define `a` }}- {{ .image }}{{ end }}{{ template `a` .ObjectMeta.Annotations }}",
			of(map[string]string{"image": evil}, nil), "",
		},
		"settings":            {"{{ range $k, $v := .ProxyConfig.ProxyMetadata }}- name: {{ $k }}{{ end }}", of(nil, map[string]string{evil: "1"}), ""},
		"by other functions":  {"- {{ index .ObjectMeta.Annotations `image` | squote }}", of(map[string]string{"image": evil}, nil), ""},
		"other ends of lines": {"- {{ .ObjectMeta.Annotations.image }}", of(map[string]string{"image": "x\u2028- evil"}, nil), ""},
		"keys of JSON": {
			"{{ range $k, $v := fromJSON (index .ObjectMeta.Annotations `volumes`) }}- name: \"{{ $k }}\"{{ end }}",
			of(map[string]string{"volumes": `{"a\"\n  - evil": 1}`}, nil), "",
		},
		"one line":                    {"- {{ .ObjectMeta.Annotations.image }}", of(map[string]string{"image": "x: \"y\""}, nil), "- x: \"y\""},
		"an end of a line at the end": {"- {{ .ObjectMeta.Annotations.image }}", of(map[string]string{"image": "x\n"}, nil), "- x\n"},
		"quoted":                      {"- {{ .ObjectMeta.Annotations.image | quote }}", of(map[string]string{"image": "x\ny"}, nil), "- \"x\\ny\""},
		"as YAML": {
			"a:\n  {{ toYaml .ObjectMeta.Annotations | indent 2 }}", of(map[string]string{"image": "x\ny"}, nil),
			"a:\n  image: |-\n    x\n    y\n",
		},
		"a variable": {"{{ $x := .ObjectMeta.Annotations.image }}{{ if $x }}- 1{{ end }}", of(map[string]string{"image": "x\ny"}, nil), "- 1"},
		"nothing":    {"- {{ .Values.none }}", &Data{Values: map[string]any{}}, "- <no value>"},
		"a number":   {"- {{ len .ObjectMeta.Annotations }}", of(nil, nil), "- 0"},
	} {
		o, err := compile("t", c.template, Names{})
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := o.(*text).write(c.data)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "several lines")):
			t.Errorf("%s: %q, %v", name, got, err)
		case c.want != "" && (err != nil || strings.TrimRight(string(got), " ") != c.want):
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestWaitsForAPlace: a template runs later where many run already.
func TestWaitsForAPlace(t *testing.T) {
	o, err := compile("t", "x", Names{})
	if err != nil {
		t.Fatal(err)
	}
	for range mostRunning {
		running <- struct{}{}
	}
	time.AfterFunc(50*time.Millisecond, func() {
		for range mostRunning {
			<-running
		}
	})
	if got, err := o.(*text).write(&Data{}); err != nil || string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
}
