package kube

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Failure is what an API server said of a request, or why it said nothing, as an sdk.StoreError;
// nil of nil.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	out := &sdk.StoreError{Code: sdk.StoreUnavailable, Reason: err.Error()}
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err):
		out.Code, out.Reason = sdk.StoreUnsupported, "the API server has no definition of this kind any more"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), apierrors.IsTimeout(err):
		out.Code = sdk.StoreDeadline
	case apierrors.IsNotFound(err):
		out.Code = sdk.StoreNotFound
	case apierrors.IsAlreadyExists(err):
		out.Code = sdk.StoreAlreadyExists
	case apierrors.IsConflict(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		out.Code = sdk.StoreConflict
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		out.Code = sdk.StoreForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		out.Code = sdk.StoreInvalid
		out.Field, out.Reason = fault(err, out.Reason)
	case apierrors.IsMethodNotSupported(err), apierrors.IsUnsupportedMediaType(err):
		out.Code = sdk.StoreUnsupported
	}
	return out
}

// fault returns the first field that the API server finds fault with, and what it says of it.
func fault(err error, reason string) (string, string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return "", reason
	}
	for _, c := range status.Status().Details.Causes {
		if field := strings.Trim(c.Field, "<>"); field != "" && field != "nil" {
			return field, c.Message
		}
	}
	return "", reason
}
