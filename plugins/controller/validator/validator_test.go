package validator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/admission"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func started(t *testing.T, config string) *plugintest.Harness {
	t.Helper()
	return plugintest.Start(t, Plugin(), config)
}

func judged(t *testing.T, h *plugintest.Harness, version, operation string, object []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	body := fmt.Appendf(nil,
		`{"apiVersion":"admission.k8s.io/%s","kind":"AdmissionReview","request":{"uid":"7","operation":%q,"object":%s}}`,
		version, operation, object)
	called := h.Call(&pb.Call{Method: pb.Webhook + path, Request: body})
	r := admissionv1.AdmissionReview{}
	if called.Code != 0 || json.Unmarshal(called.Response, &r) != nil || r.Response == nil || r.APIVersion != "admission.k8s.io/"+version {
		t.Fatalf("%d %s %s", called.Code, called.Message, called.Response)
	}
	return r.Response
}

// newer are documents of versions that this program's schemas are not of (docs/differences.md).
var newer = map[string]bool{"reqauth-invalid 19": true}

var marked = regexp.MustCompile(`(?m)^_err:.*\n`)

// TestFixtures: Istio's own examples are judged as they are to be, in both versions of reviews.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "fixtures/crd-validation"), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	h, count := started(t, `{}`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for i, chunk := range protoyaml.Split(text) {
			object, err := yaml.YAMLToJSON(marked.ReplaceAll(chunk.Text, nil))
			if err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("%s %d", name, i)
			if string(object) == "null" || newer[where] {
				continue
			}
			count++
			version := []string{"v1", "v1beta1"}[count%2]
			if a := judged(t, h, version, "CREATE", object); a.Allowed != !strings.HasSuffix(name, "-invalid") ||
				!a.Allowed && !strings.HasPrefix(a.Result.Message, "configuration is invalid: ") {
				t.Errorf("%s: allowed %v: %v", where, a.Allowed, a.Result)
			}
		}
	}
	if count < 110 {
		t.Errorf("only %d documents", count)
	}
}

// TestJudgement: errors refuse, with their field; warnings are said; what is deleted, and others'
// kinds, pass.
func TestJudgement(t *testing.T) {
	h := started(t, `{}`)
	bad := []byte(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a","namespace":"b"},"spec":{"hosts":["a"]}}`)
	if a := judged(t, h, "v1", "UPDATE", bad); a.Allowed || !strings.Contains(a.Result.Message, "http, tcp or tls must be provided in virtual service") {
		t.Errorf("%+v", a)
	}
	if a := judged(t, h, "v1", "DELETE", bad); !a.Allowed {
		t.Errorf("%+v", a)
	}
	if a := judged(t, h, "v1", "CREATE", []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)); !a.Allowed {
		t.Errorf("%+v", a)
	}
	warned := []byte(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a",` +
		`"namespace":"b"},"spec":{"hosts":["a"],"unheardOf":1,"http":[{"route":[{"destination":{"host":"a"}}]}]}}`)
	if a := judged(t, h, "v1", "CREATE", warned); !a.Allowed || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "unheardOf") {
		t.Errorf("%+v", a)
	}
	if c := h.Call(&pb.Call{Method: pb.Webhook + path, Request: []byte("x")}); c.Code != codeInvalidArgument {
		t.Errorf("%+v", c)
	}
}

// TestConform: it is a plugin as the contract has it.
func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "controller", Config: `{}`, BadConfigs: []any{`{"webhook": "x"}`}}, plugintest.Memory(Plugin()))
}

// TestReadme: the example's config is one.
func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	if len(config) == 0 {
		config = []byte(`{}`)
	}
	started(t, string(config))
}

// TestRefused: only what this webhook refused, for this reason, shows that it works.
func TestRefused(t *testing.T) {
	hook := admission.Hook{Name: "validator.coxswain.io"}
	for text, want := range map[string]bool{
		`admission webhook "validator.coxswain.io" denied the request: configuration is invalid: spec.http`:    true,
		`admission webhook "rev.validation.istio.io" denied the request: configuration is invalid: spec.http`:  false,
		`admission webhook "validator.coxswain.io" denied the request: the body is no AdmissionReview`:         false,
		`Internal error occurred: failed calling webhook "validator.coxswain.io": connection refused`:          false,
		`VirtualService.networking.istio.io "coxswain-tries-validation" is invalid: spec.hosts: Invalid value`: false,
	} {
		if refused(errors.New(text), hook) != want {
			t.Errorf("%s: %v is wanted", text, want)
		}
	}
}
