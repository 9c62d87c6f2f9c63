package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/trust"
)

// accounts is the group that all service accounts are in.
// Source: Kubernetes, "Authenticating", service account tokens.
const accounts = "system:serviceaccounts"

// refusal is what an API server says of a token that doesn't count.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refused(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// review asks a server whose token it is. An error is a *refusal, or wraps sdk.ErrUnavailable.
func (a *Authenticator) review(ctx context.Context, s *server, token string) (account, error) {
	client, err := s.client(ctx)
	if err != nil {
		a.servers.complain(s, err)
		return account{}, unavailable(s, errKubeconfig)
	}
	status, err := ask(ctx, client, token, a.config.Audiences)
	if err == nil && !status.Authenticated && a.config.FirstParty {
		status, err = ask(ctx, client, token, nil)
	}
	if err != nil {
		a.servers.complain(s, err)
		return account{}, unavailable(s, plainly(err))
	}
	return a.config.Tokens.judge(s, status)
}

// ask asks for whom a token counts, among audiences; with none, for the server itself.
// Source: Kubernetes, TokenReview (authentication.k8s.io/v1).
func ask(ctx context.Context, client rest.Interface, token string, audiences []string) (*authenticationv1.TokenReviewStatus, error) {
	body, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err != nil {
		return nil, err
	}
	answer, err := client.Post().AbsPath("/apis/authentication.k8s.io/v1/tokenreviews").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, errors.New("its answer is no TokenReview")
	}
	return &review.Status, nil
}

// judge reads what a server says. Its own words may have parts of the token in them, so they are
// told in ours.
func (t Tokens) judge(s *server, status *authenticationv1.TokenReviewStatus) (account, error) {
	if !status.Authenticated {
		return account{}, refused("the API server of the cluster %s refuses the token: %s", s.id, because(status.Error, t.Audiences))
	}
	// A server that knows nothing of audiences says none; then it is not known whom the token is
	// for.
	meant := slices.ContainsFunc(status.Audiences, func(a string) bool { return slices.Contains(t.Audiences, a) })
	if !meant && !t.FirstParty {
		return account{},
			refused("the token is meant for others: of its audiences the API server of the cluster %s says none of %s", s.id, strings.Join(t.Audiences, ", "))
	}
	namespace, name, ok := trust.Account(status.User.Username)
	if !ok || !slices.Contains(status.User.Groups, accounts) {
		return account{}, refused("the token is not a service account's")
	}
	pod := ""
	if names := status.User.Extra[podName]; len(names) == 1 {
		pod = names[0]
	}
	return account{namespace, name, pod}, nil
}

// podName is where a TokenReview says which pod a token is bound to; there is one of that name,
// with the UID that the token has. Source: Kubernetes, "Managing Service Accounts", TokenReview
// API.
const podName = "authentication.kubernetes.io/pod-name"

// because is why a server refuses a token, in words that have nothing of the token.
func because(said string, audiences []string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case has("audience"):
		return "its audience is none of " + strings.Join(audiences, ", ")
	case has("expired"):
		return "it has expired"
	case has("not valid yet"):
		return "it is not valid yet"
	case has("invalidated", "not found", "has been deleted"):
		return "the service account, or the pod that it is bound to, is gone"
	}
	return "it is not one that this cluster has issued"
}

var errKubeconfig = errors.New("its kubeconfig can't be had")

// plainly is why a request failed, for callers: without what only operators should know.
func plainly(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return errors.New("the control plane may not create tokenreviews there")
	case apierrors.IsUnauthorized(err):
		return errors.New("it does not know the control plane")
	case apierrors.IsTooManyRequests(err):
		return errors.New("it has too much to do")
	}
	return errors.New("no answer")
}
