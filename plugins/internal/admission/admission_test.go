package admission

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for body, want := range map[string]string{
		``: "no AdmissionReview in JSON", `[]`: "no AdmissionReview in JSON", `{}`: "of admission.k8s.io",
		`{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}`:              "of admission.k8s.io",
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`:              "no request",
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`: "no uid",
		strings.Repeat(`{"a":`, 1000):                                                "levels", `{"secret": "hunter2`: "no AdmissionReview in JSON",
	} {
		_, err := Read([]byte(body))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60s: %v; %q is to be in it", body, err, want)
		}
	}
	for _, version := range []string{"v1", "v1beta1"} {
		r, err := Read([]byte(`{"apiVersion":"admission.k8s.io/` + version + `","kind":"AdmissionReview","request":{"uid":"7","object":{"a":"{[\"{["}}}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := Answer(r, Patch([]byte("[]")))
		var is map[string]any
		if err != nil || json.Unmarshal(text, &is) != nil || is["apiVersion"] != "admission.k8s.io/"+version {
			t.Errorf("%s %v", text, err)
		}
		if a, _ := is["response"].(map[string]any); a["uid"] != "7" || a["allowed"] != true || a["patchType"] != "JSONPatch" || a["patch"] != "W10=" {
			t.Errorf("%s", text)
		}
	}
}
