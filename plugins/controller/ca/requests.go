package ca

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	api "istio.io/api/mesh/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// requests has signers of a cluster sign: it makes CertificateSigningRequests, approves them, waits
// for the certificates, and deletes them.
// Source: Kubernetes, "Certificates and Certificate Signing Requests" (certificates.k8s.io/v1).
type requests struct {
	objects dynamic.ResourceInterface
	config  External
	slots   slots
	// left are names of requests that are to be deleted.
	left chan string
	// log is set before the first certificate is asked for.
	log  func(level sdk.Level, text string, args ...any)
	said kube.LogLimiter
}

// requestPrefix is what the names of requests begin with, as istiod's do.
const requestPrefix = "csr-workload-"

// leastTTL is the least that a request may ask for.
// Source: Kubernetes, CertificateSigningRequestSpec.expirationSeconds.
const leastTTL = 10 * time.Minute

func newRequests(objects dynamic.Interface, c External) *requests {
	return &requests{
		objects: objects.Resource(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")),
		config:  c, slots: make(slots, atOnce), left: make(chan string, 1000),
	}
}

// certifier returns a signer of the cluster, and those of a domain. The error is that a root isn't
// known.
func (r *requests) certifier(signer, domain string, mesh *api.MeshConfig) (certifier, error) {
	roots, err := rootsBySigner(mesh)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(roots, func(s string, _ []string) bool {
		return s != signer && (domain == "" || !strings.HasPrefix(s, domain+"/"))
	})
	if signer != "" && roots[signer] == nil {
		own, err := readRoots(r.config.Roots)
		if err != nil {
			return nil, err
		}
		if own != nil {
			roots[signer] = own
		}
	}
	if len(roots) == 0 || signer != "" && roots[signer] == nil {
		return nil, errors.New("no root is known of the signer " + orAny(signer, domain) + ": put it into caCertificates of the mesh's settings " +
			"(pem, certSigners: [\"" + orAny(signer, domain) + "\"]), or into the file of external.roots, " + r.config.Roots)
	}
	return &clusterSigner{requests: r, signer: signer, domain: domain, roots: roots}, nil
}

func orAny(signer, domain string) string {
	if signer != "" {
		return signer
	}
	return domain + "/NAME"
}

// clusterSigner is a signer of the cluster, or several of a domain.
type clusterSigner struct {
	*requests
	signer, domain string
	// roots are those of each, a certificate in PEM each.
	roots map[string][]string
}

func (k *clusterSigner) bundle() (all []string) {
	names := slices.Sorted(maps.Keys(k.roots))
	for _, name := range append([]string{k.signer}, names...) {
		for _, r := range k.roots[name] {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (k *clusterSigner) same(as certifier) bool {
	other, ok := as.(*clusterSigner)
	return ok && k.signer == other.signer && k.domain == other.domain && maps.EqualFunc(k.roots, other.roots, slices.Equal[[]string])
}

func (k *clusterSigner) String() string { return "the signer " + orAny(k.signer, k.domain) }

// of is the signer that a request goes to.
func (k *clusterSigner) of(a ask) (string, error) {
	name := k.signer
	switch {
	case a.signer != "" && k.domain == "":
		return "", refuse(codes.InvalidArgument,
			"%s names the signer %q, and no domain of signers is set: set certSignerDomain, or leave the name out",
			certSigner, a.signer)
	case a.signer != "":
		name = k.domain + "/" + a.signer
	case name == "":
		return "", refuse(codes.InvalidArgument,
			"no signer is set: name one of the domain %s (%s, or ISTIO_META_CERT_SIGNER of the agent), or set k8sSigner",
			k.domain, certSigner)
	}
	if k.roots[name] == nil {
		return "", refuse(codes.FailedPrecondition,
			"no root is known of the signer %q: caCertificates of the mesh's settings must have it (pem, certSigners: [%q])",
			name, name)
	}
	return name, nil
}

func (k *clusterSigner) certify(ctx context.Context, a ask) (chain, roots []string, err error) {
	name, err := k.of(a)
	if err != nil {
		return nil, nil, err
	}
	if err := authority.Modest(a.csr, a.URIs, a.DNS); err != nil {
		return nil, nil, refuse(codes.InvalidArgument, "csr: %v", err)
	}
	ctx, cancel := k.config.bounded(ctx)
	defer cancel()
	free, err := k.slots.acquire(ctx, "the signer "+name)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	text, err := k.sign(ctx, name, a)
	if err == nil {
		chain, err = fit("the signer "+name, string(text), a, k.roots[name])
	}
	if err != nil {
		if k.said.Allow(name, err, time.Now()) {
			k.log(sdk.Warn, "a certificate could not be had of the cluster's signer", "signer", name, "error", err.Error())
		}
		return nil, nil, err
	}
	return chain, k.roots[name], nil
}

// sign has a signer sign, and returns what it has made, in PEM.
func (r *requests) sign(ctx context.Context, signer string, a ask) ([]byte, error) {
	seconds := int32(max(a.TTL, leastTTL) / time.Second)
	made := &certificatesv1.CertificateSigningRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
		// The name is known before there is an answer, so that it can be deleted if there is none.
		ObjectMeta: metav1.ObjectMeta{Name: requestPrefix + strings.ToLower(rand.Text()), Labels: map[string]string{rootLabel: "true"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: csrText(a), SignerName: signer, ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
				certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth,
			},
		},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return nil, refuse(codes.Internal, "the request can't be written: %v", err)
	}
	if _, err := r.objects.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		if ctx.Err() != nil {
			r.leave(made.Name)
		}
		return nil, refused("make a CertificateSigningRequest", err)
	}
	defer r.leave(made.Name)
	return r.await(ctx, made.Name, signer)
}

// await approves a request, and waits for its certificate.
func (r *requests) await(ctx context.Context, name, signer string) ([]byte, error) {
	const again = 100 * time.Millisecond
	w := &waiting{requests: r, name: name, signer: signer}
	for {
		text, err := w.follow(ctx)
		if text != nil || err != nil {
			return text, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, w.late()
		}
	}
}

// waiting is one wait for a certificate.
type waiting struct {
	*requests
	name, signer string
	approved     bool
}

// follow follows the request until there is a certificate, or why there will be none; neither: the
// watch has ended, or ctx has.
func (w *waiting) follow(ctx context.Context) (text []byte, err error) {
	changes, err := w.objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + w.name})
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, refused("watch CertificateSigningRequests", err)
	}
	defer changes.Stop()
	for {
		select {
		case e, ok := <-changes.ResultChan():
			if !ok {
				return nil, nil
			}
			if text, err := w.step(ctx, e); text != nil || err != nil {
				return text, err
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// step is one change of the request.
func (w *waiting) step(ctx context.Context, e watch.Event) (text []byte, err error) {
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, nil // the watch has failed, and ends
	}
	now := &certificatesv1.CertificateSigningRequest{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, now); err != nil {
		return nil, refuse(codes.Internal, "the API server's CertificateSigningRequest can't be read: %v", err)
	}
	if e.Type == watch.Deleted {
		return nil, refuse(codes.Unavailable, "somebody has deleted the request %s before the signer %s signed it; try again", w.name, w.signer)
	}
	for _, c := range now.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return nil, refuse(codes.PermissionDenied, "the request %s for the signer %s was denied: %s: %s", w.name, w.signer, c.Reason, c.Message)
		case certificatesv1.CertificateFailed:
			return nil, refuse(codes.FailedPrecondition, "the signer %s can't sign the request %s: %s: %s", w.signer, w.name, c.Reason, c.Message)
		case certificatesv1.CertificateApproved:
			w.approved = true
		}
	}
	if len(now.Status.Certificate) > 0 {
		return now.Status.Certificate, nil
	}
	if w.approved {
		return nil, nil
	}
	return nil, w.approve(ctx, now)
}

// approve approves the request as it is now. If it has changed meanwhile, the change comes.
func (w *waiting) approve(ctx context.Context, now *certificatesv1.CertificateSigningRequest) error {
	now.Status.Conditions = append(now.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Coxswain",
		Message: "The control plane has checked who asks: the names are the caller's.", LastUpdateTime: metav1.Now(),
	})
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
	if err != nil {
		return refuse(codes.Internal, "the approval can't be written: %v", err)
	}
	_, err = w.objects.Update(ctx, &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{}, "approval")
	if err == nil || ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return refused("approve requests for the signer "+w.signer, err)
}

func (w *waiting) late() error {
	if !w.approved {
		return refuse(codes.Unavailable, "the API server was too slow for the request %s to be approved in time; try again", w.name)
	}
	return refuse(codes.Unavailable,
		"the signer %s did not sign in time (external.timeout is %s): look whether its controller runs, and whether it signs for %s",
		w.signer, w.config.Timeout, w.signer)
}

// refused is an error of the API server for a caller.
func refused(what string, err error) error {
	switch {
	case apierrors.IsForbidden(err): // as an API server that has just begun says for a moment, too
		return refuse(codes.Unavailable,
			"the control plane may not %s: give its account the rights of a registration authority (deploy/kubernetes/signers.yaml): %v",
			what, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refuse(codes.InvalidArgument, "the API server refuses to %s: %v", what, err)
	}
	return refuse(codes.Unavailable, "the API server can't %s now; try again: %v", what, err)
}

// leave has a request deleted, soon.
func (r *requests) leave(name string) {
	select {
	case r.left <- name:
	default: // the cluster deletes what is left after an hour, or a day
	}
}

// sweep deletes requests that are over until ctx ends, and then those that are left, if the API
// server answers at once.
func (r *requests) sweep(ctx context.Context) {
	const last = 2 * time.Second
	for {
		select {
		case name := <-r.left:
			r.remove(ctx, name)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
			for len(r.left) > 0 && ctx.Err() == nil {
				r.remove(ctx, <-r.left)
			}
			return
		}
	}
}

// remove deletes a request, and tries until it can or ctx ends.
func (r *requests) remove(ctx context.Context, name string) {
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		asked, cancel := context.WithTimeout(ctx, asking)
		err := r.objects.Delete(asked, name, metav1.DeleteOptions{})
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		if r.said.Allow("delete", err, time.Now()) {
			r.log(sdk.Warn, "a CertificateSigningRequest that is over can't be deleted; it is tried again", "error", err.Error())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			r.leave(name) // for the last try
			return
		}
	}
}
