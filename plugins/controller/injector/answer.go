package injector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/admission"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// path is the webhook's; below it stand variables and their values, as istiod has them:
// /inject/cluster/NAME/net/NAME.
const path = "/inject"

// Codes of gRPC.
const codeInvalidArgument, codeUnavailable = 3, 14

// garbage is how much of it may gather once pods come, in percent of what is in use: little is, and
// of what a pod takes nothing stays. With what built-in plugins have otherwise, looking for garbage
// takes as long as pods do.
const garbage = 200

var lenient = sync.OnceFunc(func() {
	if before := debug.SetGCPercent(garbage); before < 0 || before > garbage {
		debug.SetGCPercent(before)
	}
})

// Methods implements sdk.CallHandler.
func (c *Controller) Methods() []string { return []string{pb.Webhook + path} }

// Call implements sdk.CallHandler.
func (c *Controller) Call(ctx context.Context, call sdk.Call) ([]byte, error) {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, &sdk.CallError{Code: codeUnavailable, Message: "the injector has not read its settings yet"}
	}
	lenient()
	c.catchUp()
	s := c.settings.Load()
	if s == nil {
		return nil, &sdk.CallError{Code: codeUnavailable, Message: "what is to be injected can't be used; the control plane's log says why"}
	}
	return c.review(s, call)
}

// review answers a review by settings.
func (c *Controller) review(s *render.Settings, call sdk.Call) ([]byte, error) {
	review, err := admission.Read(call.Request)
	if err != nil {
		c.counts.Add(counted, "outcome", "failure")
		return nil, &sdk.CallError{Code: codeInvalidArgument, Message: err.Error()}
	}
	env, err := variables(strings.TrimPrefix(call.Method, pb.Webhook+path))
	if err != nil {
		c.counts.Add(counted, "outcome", "failure")
		return nil, &sdk.CallError{Code: codeInvalidArgument, Message: err.Error()}
	}
	a := c.answer(s, review.Request, env)
	switch {
	case !a.Allowed:
		c.counts.Add(counted, "outcome", "failure")
	case len(a.Patch) == 0:
		c.counts.Add(counted, "outcome", "skip")
	default:
		c.counts.Add(counted, "outcome", "success")
	}
	return admission.Answer(review, a)
}

// counted counts pods: those that got a proxy (success), get none (skip), or could get none
// (failure).
const counted = "injections_total"

// answer is what becomes of a pod.
func (c *Controller) answer(s *render.Settings, r *admissionv1.AdmissionRequest, env map[string]string) admissionv1.AdmissionResponse {
	if r.Kind.Kind != "Pod" || r.Kind.Group != "" {
		return admission.Allow()
	}
	pod := &corev1.Pod{}
	if json.Unmarshal(r.Object.Raw, pod) != nil {
		return admission.Refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the object is no Pod")
	}
	pod.ManagedFields = nil
	before := pod.DeepCopy()
	pod.Namespace = cmp.Or(pod.Namespace, r.Namespace)
	if yes, _ := s.Required(pod, pod.Namespace); !yes {
		return admission.Allow()
	}
	after, err := c.inject(s, pod, env)
	if err != nil {
		return refused(err)
	}
	if before.Namespace == "" {
		after.Namespace = ""
	}
	changes, err := render.Changes(before, after)
	if err != nil {
		return refused(err)
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return refused(err)
	}
	return admission.Patch(patch)
}

func refused(err error) admissionv1.AdmissionResponse {
	return admission.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "no proxy can be injected: "+err.Error())
}

// inject returns a pod with its proxy.
func (c *Controller) inject(s *render.Settings, pod *corev1.Pod, env map[string]string) (*corev1.Pod, error) {
	m := c.mesh.Load()
	proxy, err := render.ProxyConfig(m, c.proxies.Load().Concerning(m.GetRootNamespace(), pod.Namespace, pod.Labels), pod.Annotations)
	if err != nil {
		return nil, err
	}
	of, kind := render.Owner(pod)
	r := render.Request{
		Pod: pod, Of: of, Kind: kind, Mesh: m, Proxy: proxy, Revision: c.config.Revision, Env: env, Compliance: c.config.Compliance,
	}
	here := cmp.Or(env["ISTIO_META_CLUSTER_ID"], c.config.Cluster) == c.config.Cluster
	r.Native = c.config.NativeSidecars == "true" || c.config.NativeSidecars == "auto" && here && c.nodes.Load().native(pod.Spec.NodeName)
	if s.OpenShift() && here {
		r.User, r.Group = render.Users((*c.namespaces.Load())[pod.Namespace])
	}
	return s.Inject(r)
}

// mostVariables is how many variables a path may have.
const mostVariables = 32

// variables reads what stands below the path: a name and a value, in turns. A slash in a value is
// written --slash--. cluster and net stand for Istio's variables; other names are those of
// variables themselves. The form :ENV:NAME=VALUE:ENV:… is istiod's, too.
func variables(text string) (map[string]string, error) {
	text, _, _ = strings.Cut(text, "?")
	text = strings.Trim(text, "/")
	out := map[string]string{}
	if text == "" {
		return out, nil
	}
	put := func(name, value string) error {
		name, err := url.PathUnescape(name)
		if err != nil {
			return err
		}
		if value, err = url.PathUnescape(value); err != nil {
			return err
		}
		switch name {
		case "cluster":
			name = "ISTIO_META_CLUSTER_ID"
		case "net":
			name = "ISTIO_META_NETWORK"
		default:
			name = strings.ToUpper(name)
		}
		if out[name] = value; len(out) > mostVariables {
			return fmt.Errorf("the path has more than %d variables", mostVariables)
		}
		return nil
	}
	if rest, ok := strings.CutPrefix(text, ":ENV:"); ok {
		for pair := range strings.SplitSeq(rest, ":ENV:") {
			if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
				if err := put(name, value); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	parts := strings.Split(text, "/")
	for i := 0; i+1 < len(parts); i += 2 {
		if err := put(parts[i], strings.ReplaceAll(parts[i+1], "--slash--", "/")); err != nil {
			return nil, err
		}
	}
	return out, nil
}
