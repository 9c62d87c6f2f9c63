package secrets

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// How long an answer of the API server counts, and when it is asked again if it has given none.
const (
	allowedFor = 5 * time.Minute
	deniedFor  = time.Minute
	retryAfter = 5 * time.Second
	askingFor  = 10 * time.Second
)

// right is what is known of an account.
type right struct {
	account  secrets.Account
	known    bool
	allowed  bool
	due      time.Time
	asked    bool // an answer is on its way
	unwanted time.Time
}

// verdict is what the API server said of an account.
type verdict struct {
	account secrets.Account
	allowed bool
	err     error
}

var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}

// ask asks whether an account may list the Secrets of its namespace, as the groups that all
// accounts are in may, too. Source: Kubernetes, authorization.k8s.io/v1 SubjectAccessReview.
func ask(ctx context.Context, client *kube.Client, a secrets.Account) verdict {
	ctx, cancel := context.WithTimeout(ctx, askingFor)
	defer cancel()
	answer, err := client.Objects.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1",
		"kind":       "SubjectAccessReview",
		"spec": map[string]any{
			"user":               "system:serviceaccount:" + a.Namespace + ":" + a.Name,
			"groups":             []any{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"},
			"resourceAttributes": map[string]any{"namespace": a.Namespace, "verb": "list", "resource": "secrets"},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return verdict{account: a, err: err}
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return verdict{account: a, allowed: allowed, err: err}
}

// note notes a verdict, and reports whether it says something new. While there is none, what was
// said before counts.
func (r *right) note(v verdict, now time.Time) (changed bool) {
	r.asked = false
	if v.err != nil {
		r.due = now.Add(retryAfter)
		return false
	}
	changed = !r.known || r.allowed != v.allowed
	r.known, r.allowed, r.due = true, v.allowed, now.Add(deniedFor)
	if v.allowed {
		r.due = now.Add(allowedFor)
	}
	return changed
}

// row is what is published of an account.
func (r *right) row() secrets.Right {
	out := secrets.Right{Allowed: r.allowed}
	if !r.allowed {
		out.Reason = fmt.Sprintf("the service account %s/%s may not list secrets in its namespace: give it a Role with that verb",
			r.account.Namespace, r.account.Name)
	}
	return out
}
