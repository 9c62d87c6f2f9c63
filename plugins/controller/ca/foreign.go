package ca

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// pluggedSecret is the Secret that istiod's Deployment mounts at etc/cacerts. Source: Istio, "Plug
// in CA Certificates".
const pluggedSecret = "cacerts"

// mostReported is how many namespaces are named whose root is somebody else's.
const mostReported = 100

// fingerprint is the SHA-256 of a certificate, in hexadecimal digits.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// fingerprints reads what people say of roots: digits in either case, with or without colons.
func fingerprints(texts []string) (out []string, err error) {
	for i, text := range texts {
		digits := strings.ToLower(strings.ReplaceAll(text, ":", ""))
		if raw, err := hex.DecodeString(digits); err != nil || len(raw) != sha256.Size {
			return nil, strict.Errorf(fmt.Sprintf("replaceRoots[%d]", i),
				"%q is no SHA-256 of a certificate: 64 hexadecimal digits (openssl x509 -noout -fingerprint -sha256)",
				text)
		}
		out = append(out, digits)
	}
	return out, nil
}

// certificates are those in a text; what is none is left out.
func certificates(text []byte) (all []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, c)
		}
	}
}

// continues reports whether who believes one of the certificates believes the other as well: it is
// the same, or was made anew with the same name and key.
func continues(a, b *x509.Certificate) bool {
	return a.Equal(b) || bytes.Equal(a.RawSubject, b.RawSubject) && bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// claims are what this CA may overwrite: its own roots, those that it had, and those that it was
// told to replace. Any goroutine may ask.
type claims struct {
	mu       sync.Mutex
	own      []*x509.Certificate
	replaced []string
}

// mine notes the roots of who signs now; those before are its own still.
func (r *claims) mine(texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range certificates([]byte(strings.Join(texts, ""))) {
		if !slices.ContainsFunc(r.own, c.Equal) {
			r.own = append(r.own, c)
		}
	}
}

// foreign returns the first root of a text if somebody else's are there and none that this CA, with
// roots beside those that it had, continues; nil: it may be overwritten.
func (r *claims) foreign(text []byte, beside ...string) *x509.Certificate {
	there := certificates(text)
	r.mu.Lock()
	known := append(certificates([]byte(strings.Join(beside, ""))), r.own...)
	r.mu.Unlock()
	for _, c := range there {
		if slices.Contains(r.replaced, fingerprint(c)) || slices.ContainsFunc(known, func(k *x509.Certificate) bool { return continues(c, k) }) {
			return nil
		}
	}
	if len(there) == 0 {
		return nil
	}
	return there[0]
}

// named is a root in words.
func named(c *x509.Certificate) string {
	return fmt.Sprintf("%s, SHA-256 %s", c.Subject, fingerprint(c))
}

// foreignError is that what somebody else has left stands in this CA's way, until people decide.
type foreignError struct{ where, what, hint string }

func (e *foreignError) Error() string { return e.where + " has " + e.what + "; " + e.hint }

// free reports, as an error, that the cluster has a CA that is not plugged in here: one that signs
// itself would take its place.
func (c *Controller) free(ctx context.Context) error {
	if c.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	found := &corev1.Secret{}
	err := c.client.Core.Get().Namespace(c.config.Namespace).Resource("secrets").Name(pluggedSecret).Do(ctx).Into(found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("whether somebody has plugged in a CA is not known: %w", err)
	}
	where := "the Secret " + c.config.Namespace + "/" + pluggedSecret
	said := "a CA that is not plugged in here"
	hint := "mount it at the directory `plugged` (etc/cacerts), or go on with --enableCAServer=false"
	for _, key := range []string{rootKey, "ca.crt", certificateKey, "tls.crt"} {
		if len(found.Data[key]) == 0 {
			continue
		}
		switch other := c.claims.foreign(found.Data[key]); {
		case other != nil:
			return &foreignError{where, said + ", with the root " + named(other), hint + ", or give its root up with --replaceRoot " + fingerprint(other)}
		case len(certificates(found.Data[key])) > 0:
			return nil
		}
	}
	return &foreignError{where, said, hint}
}

// unclaimed reports, as an error, that the control plane's own namespace has the root of somebody
// else, which who would sign, with these roots, doesn't continue.
func (c *Controller) unclaimed(ctx context.Context, believed []string) error {
	if c.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	list := &corev1.ConfigMapList{} // a list of one name: the right to get it isn't needed
	err := c.client.Core.Get().Namespace(c.config.Namespace).Resource("configmaps").
		Param("fieldSelector", "metadata.name="+rootMap).Do(ctx).Into(list)
	if err != nil {
		return fmt.Errorf("whose root the namespace %s has is not known: %w", c.config.Namespace, err)
	}
	for _, m := range list.Items {
		if other := c.claims.foreign([]byte(m.Data[rootMapKey]), believed...); other != nil {
			return &foreignError{
				"the ConfigMap " + c.config.Namespace + "/" + rootMap, "the root " + named(other) + ", which is none of this CA's",
				"workloads of the mesh believe it: sign with its key (`plugged`, or the Secret " + c.config.Secret +
					"), or replace it with --replaceRoot " + fingerprint(other),
			}
		}
	}
	return nil
}

// reported are the faults that `coxswain config` shows of a CA. Any goroutine may set its part.
type reported struct {
	mu  sync.Mutex
	out sdk.Publisher
	// stopped is why nothing is signed; left are namespaces whose root is somebody else's.
	stopped string
	left    map[string]*x509.Certificate
	// rows are those that are published.
	rows map[string]string
}

// stop notes why nothing is signed; empty: something is.
func (r *reported) stop(why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = why
	return r.publish()
}

// why is why nothing is signed; empty: something is, or it isn't known yet.
func (r *reported) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// leave notes that a namespace's root is left as it is, or, with nil, that it is not.
func (r *reported) leave(namespace string, root *x509.Certificate) (news bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.left[namespace]
	if was == root || was != nil && root != nil && was.Equal(root) {
		return false, nil
	}
	if r.left == nil {
		r.left = map[string]*x509.Certificate{}
	}
	if r.left[namespace] = root; root == nil {
		delete(r.left, namespace)
	}
	return true, r.publish()
}

// clear forgets what was left: who hands the root out is another replica now.
func (r *reported) clear() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = nil
	return r.publish()
}

// publish publishes what has changed. The lock is held.
func (r *reported) publish() error {
	next := map[string]kinds.Fault{}
	if r.stopped != "" {
		next["ca"] = kinds.Fault{
			File: "controller/ca", Kind: bundle.Stopped, Name: "ca", Severity: finding.Error, Reason: "stopped",
			Message: "nothing is signed, and port secureGRPC has no certificate: " + r.stopped,
		}
	}
	n := 0
	for namespace, root := range r.left {
		if n++; n > mostReported {
			break
		}
		next["root "+namespace] = kinds.Fault{
			File: "k8s://ConfigMap/" + namespace + "/" + rootMap, Kind: "ConfigMap", Namespace: namespace,
			Name: rootMap, Severity: finding.Warning, Reason: "foreign",
			Message: "it has the root " + named(root) + ", which is none of this CA's, and is left as it is",
			Hint:    "delete it, or --replaceRoot " + fingerprint(root) + " has it replaced",
		}
	}
	var rows []*sdk.Row
	texts := map[string]string{}
	for key, f := range next {
		payload, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if texts[key] = string(payload); r.rows[key] != texts[key] {
			rows = append(rows, &sdk.Row{Key: key, Payload: payload, Source: f.File})
		}
	}
	var gone []string
	for key := range r.rows {
		if _, is := next[key]; !is {
			gone = append(gone, key)
		}
	}
	if r.rows = texts; len(rows)+len(gone) == 0 {
		return nil
	}
	return r.out.Update(kinds.FaultTable, rows, gone)
}

// leaves reports whether a namespace's ConfigMap has somebody else's root, which stays, and has it
// shown.
func (h *handing) leaves(found *corev1.ConfigMap) (bool, error) {
	other := h.claims.foreign([]byte(found.Data[rootMapKey]))
	news, err := h.reported.leave(found.Namespace, other)
	if news && other != nil {
		h.out.Log(sdk.Warn, "a namespace has the root of somebody else, and keeps it", "namespace", found.Namespace, "root", named(other),
			"hint", "delete the ConfigMap, or start with --replaceRoot "+fingerprint(other))
	}
	return other != nil, err
}
