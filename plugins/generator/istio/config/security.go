package config

import (
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Tables of Istio's security resources.
const (
	PeerAuthentications    = "security.istio.io/PeerAuthentication"
	RequestAuthentications = "security.istio.io/RequestAuthentication"
	AuthorizationPolicies  = "security.istio.io/AuthorizationPolicy"
)

// KeySets is the table of key sets that tokens are checked with: a row's key is what authn.KeySet
// says, its payload the set as text (RFC 7517).
const KeySets = "jwks"

// PeerAuthentication reports whether workloads take mutual TLS, plain text or both.
type PeerAuthentication struct {
	Meta
	Spec *security.PeerAuthentication
}

// ParsePeerAuthentication reads a row.
func ParsePeerAuthentication(row *pb.Row) (*PeerAuthentication, error) {
	p := &PeerAuthentication{Meta: parseMeta(row), Spec: &security.PeerAuthentication{}}
	return p, unmarshal(row, p.Spec)
}

// RequestAuthentication says which tokens workloads take.
type RequestAuthentication struct {
	Meta
	Spec *security.RequestAuthentication
}

// ParseRequestAuthentication reads a row.
func ParseRequestAuthentication(row *pb.Row) (*RequestAuthentication, error) {
	r := &RequestAuthentication{Meta: parseMeta(row), Spec: &security.RequestAuthentication{}}
	return r, unmarshal(row, r.Spec)
}

// AuthorizationPolicy says who may do what.
type AuthorizationPolicy struct {
	Meta
	Annotations map[string]string
	Spec        *security.AuthorizationPolicy
}

// ParseAuthorizationPolicy reads a row.
func ParseAuthorizationPolicy(row *pb.Row) (*AuthorizationPolicy, error) {
	a := &AuthorizationPolicy{Meta: parseMeta(row), Annotations: row.Annotations, Spec: &security.AuthorizationPolicy{}}
	return a, unmarshal(row, a.Spec)
}

// For reports whether it is for a workload in a namespace with labels.
func (r *RequestAuthentication) For(namespace string, labels map[string]string) bool {
	return istio.Attaches(r.Spec, r.Namespace == namespace, labels)
}

// For reports whether it is for a workload in a namespace with labels.
func (a *AuthorizationPolicy) For(namespace string, labels map[string]string) bool {
	return istio.Attaches(a.Spec, a.Namespace == namespace, labels)
}
