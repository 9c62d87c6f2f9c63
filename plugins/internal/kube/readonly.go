package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// readOnlyVariable is core/host's: the core sets it for each built-in plugin.
const readOnlyVariable = "COXSWAIN_READ_ONLY"

// ReadOnly reports whether this process is to write in no cluster (`coxswain discovery
// --readOnly`). Who would write need not begin then: clients refuse it in any case.
func ReadOnly() bool { return os.Getenv(readOnlyVariable) == "true" }

// guarded is next, which in a process that is to write in no cluster gets nothing but what reads:
// anything else is answered as an API server would that forbids it, and isn't sent.
func guarded(next http.RoundTripper) http.RoundTripper {
	if !ReadOnly() {
		return next
	}
	return tripper(func(q *http.Request) (*http.Response, error) {
		if reads(q.Method, q.URL.Path) {
			return next.RoundTrip(q)
		}
		if q.Body != nil {
			_ = q.Body.Close()
		}
		return forbidden(q), nil
	})
}

// reviews are the kinds that are created to ask something; an API server keeps none of them.
// Source: Kubernetes, API reference, authentication.k8s.io and authorization.k8s.io.
var reviews = map[string][]string{
	"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews"},
	"authorization.k8s.io":  {"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
}

// connecting are the subresources by which even a GET does something to a pod, a node or a service.
var connecting = []string{"proxy", "exec", "attach", "portforward"}

// reads reports whether a request changes nothing: get, list and watch, and the creation of
// reviews.
func reads(method, path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := "" // of [apis GROUP VERSION …], or the core's, of [api VERSION …]
	if len(parts) > 1 && parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" { // [namespaces NAMESPACE RESOURCE …]
		parts = parts[2:]
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return len(parts) < 3 || !slices.Contains(connecting, parts[2]) // [RESOURCE NAME SUBRESOURCE …]
	case http.MethodPost:
		return len(parts) == 1 && slices.Contains(reviews[group], parts[0])
	}
	return false
}

// forbidden is the answer to a request that isn't sent.
func forbidden(q *http.Request) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
		Message: fmt.Sprintf("this control plane writes in no cluster (--readOnly): %s %s is not sent", q.Method, q.URL.Path),
	}
	text, _ := json.Marshal(status) // it has nothing that can't be
	return &http.Response{
		Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: q,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}
