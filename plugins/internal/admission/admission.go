// Package admission reads what an API server asks of a webhook about an object, and writes the
// answer: AdmissionReview of admission.k8s.io/v1 and v1beta1, which look the same.
package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admission "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the group of the kind; v1 and v1beta1 are its versions.
const group, kind = "admission.k8s.io/", "AdmissionReview"

// mostText is how many bytes of a message are told.
const mostText = 16 << 10

// deepest is how many levels a review may have: what is deeper costs more to read than it says.
const deepest = 300

// Read reads a review. The error says what is wrong with it, and repeats nothing of it.
func Read(body []byte) (*admission.AdmissionReview, error) {
	if depth(body) > deepest {
		return nil, fmt.Errorf("the review has more than %d levels", deepest)
	}
	r := &admission.AdmissionReview{}
	if json.Unmarshal(body, r) != nil {
		return nil, errors.New("the body is no AdmissionReview in JSON")
	}
	version, ok := strings.CutPrefix(r.APIVersion, group)
	if !ok || r.Kind != kind || version != "v1" && version != "v1beta1" {
		return nil, errors.New("the body is no AdmissionReview of admission.k8s.io/v1 or v1beta1")
	}
	if r.Request == nil || r.Request.UID == "" {
		return nil, errors.New("the review has no request, or no uid")
	}
	return r, nil
}

// depth is how many brackets are open at most.
func depth(text []byte) (most int) {
	open, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			most = max(most, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return most
}

// Answer writes a review with the response to a request.
func Answer(of *admission.AdmissionReview, response admission.AdmissionResponse) ([]byte, error) {
	response.UID = of.Request.UID
	return json.Marshal(&admission.AdmissionReview{TypeMeta: of.TypeMeta, Response: &response})
}

// Allow is the response that lets an object pass, with warnings that people see.
func Allow(warnings ...string) admission.AdmissionResponse {
	return admission.AdmissionResponse{Allowed: true, Warnings: warnings}
}

// Refuse is the response that does not; the text says why.
func Refuse(code int32, reason metav1.StatusReason, text string) admission.AdmissionResponse {
	if len(text) > mostText {
		text = text[:mostText] + " …"
	}
	return admission.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: strings.ToValidUTF8(text, "?")},
	}
}

// Patch is the response that lets an object pass, changed by a JSON patch.
func Patch(patch []byte) admission.AdmissionResponse {
	how := admission.PatchTypeJSONPatch
	return admission.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &how}
}
