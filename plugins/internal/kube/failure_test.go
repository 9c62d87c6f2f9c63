package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
		if !errors.As(Failure(c.err), &e) || e.Code != c.code || e.Field != c.field || e.Reason == "" {
			t.Errorf("%v: %+v, not %v of %q", c.err, e, c.code, c.field)
		}
	}
	if Failure(nil) != nil {
		t.Error("nil is a failure")
	}
}
