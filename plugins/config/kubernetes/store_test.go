package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestFailure: what an API server says is one of the contract's codes.
func TestFailure(t *testing.T) {
	entries := schema.GroupResource{Group: "networking.istio.io", Resource: "serviceentries"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "networking.istio.io", Kind: "ServiceEntry"}, "web", field.ErrorList{
		field.Required(field.NewPath("spec", "hosts").Index(0), "a host is needed"),
	})
	undefined := apierrors.NewGenericServerResponse(404, "get", entries, "web", "404 page not found", 0, true)
	for _, c := range []struct {
		err   error
		code  sdk.StoreCode
		field string
	}{
		{apierrors.NewNotFound(entries, "web"), sdk.StoreNotFound, ""},
		{undefined, sdk.StoreUnsupported, ""},
		{apierrors.NewAlreadyExists(entries, "web"), sdk.StoreAlreadyExists, ""},
		{apierrors.NewConflict(entries, "web", errors.New("changed")), sdk.StoreConflict, ""},
		{apierrors.NewResourceExpired("too old"), sdk.StoreConflict, ""},
		{invalid, sdk.StoreInvalid, "spec.hosts[0]"},
		{apierrors.NewBadRequest("no"), sdk.StoreInvalid, ""},
		{apierrors.NewForbidden(entries, "web", errors.New("no right")), sdk.StoreForbidden, ""},
		{apierrors.NewUnauthorized("who"), sdk.StoreForbidden, ""},
		{apierrors.NewMethodNotSupported(entries, "patch"), sdk.StoreUnsupported, ""},
		{apierrors.NewServiceUnavailable("later"), sdk.StoreUnavailable, ""},
		{apierrors.NewTooManyRequests("later", 1), sdk.StoreUnavailable, ""},
		{apierrors.NewInternalError(errors.New("etcd")), sdk.StoreUnavailable, ""},
		{fmt.Errorf("dial: %w", context.DeadlineExceeded), sdk.StoreDeadline, ""},
		{errors.New("connection refused"), sdk.StoreUnavailable, ""},
	} {
		var e *sdk.StoreError
		if !errors.As(failure(c.err), &e) || e.Code != c.code || e.Field != c.field || e.Reason == "" {
			t.Errorf("%v: %+v, not %v of %q", c.err, e, c.code, c.field)
		}
	}
	if failure(nil) != nil {
		t.Error("nil is a failure")
	}
}

// TestGiven: what can't be an object of the table is refused before anybody is asked.
func TestGiven(t *testing.T) {
	at := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(Config{Writes: true}, &server{objects: client, found: map[string]schema.GroupVersionResource{kinds.ServiceEntry: at}})
	head := `"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry"`
	for text, field := range map[string]string{
		`{"apiVersion": "security.istio.io/v1", "kind": "ServiceEntry"}`:       "apiVersion",
		`{"apiVersion": "networking.istio.io/v1", "kind": "Gateway"}`:          "kind",
		`{` + head + `, "metadata": {"name": "web"}}`:                          "metadata.namespace",
		`{` + head + `, "metadata": {"namespace": "shop"}}`:                    "metadata.name",
		`{` + head + `, "metadata": {"namespace": "shop", "name": "web"}}`:     "metadata.resourceVersion",
		`{` + head + `, "metadata": []}`:                                       "metadata.namespace",
		`[]`:                                                                   "",
		`null`:                                                                 "",
		`{"apiVersion": {}, "kind": 1, "metadata": {"resourceVersion": true}}`: "apiVersion",
	} {
		_, err := s.Update(t.Context(), kinds.ServiceEntry, []byte(text))
		var e *sdk.StoreError
		if !errors.As(err, &e) || e.Code != sdk.StoreInvalid || e.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := s.Get(t.Context(), kinds.FaultTable, "shop", "web"); sdk.CodeOf(err) != sdk.StoreUnsupported {
		t.Error(err)
	}
	if got := newSource(Config{}, s.server).Writes(); len(got) > 0 {
		t.Errorf("writes: false takes writes of %v", got)
	}
}
