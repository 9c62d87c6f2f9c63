package sds

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// Beginnings of names that proxies ask for.
const (
	secretScheme    = "kubernetes://"
	gatewayScheme   = "kubernetes-gateway://"
	configMapScheme = "configmap://"
	builtinScheme   = "builtin://"
	invalidScheme   = "invalid://"
	// externalScheme begins credentials that others serve where somebody does, and that are Secrets otherwise.
	externalScheme = "sds://"
)

// rootsSuffix makes a credential's name that of the roots which go with it.
const rootsSuffix = "-cacert"

// reference is what a name means.
type reference struct {
	// text is the name without rootsSuffix.
	text                  string
	kind, namespace, name string
	// gateway: a Gateway says who may have it.
	gateway bool
	// roots: what to trust, in place of a certificate with its key.
	roots bool
}

// parse reads a name that a proxy of a namespace asks for.
func parse(name, namespace string) (reference, error) {
	r := reference{namespace: namespace}
	r.text, r.roots = strings.CutSuffix(name, rootsSuffix)
	scheme, path, ok := strings.Cut(r.text, "://")
	if !ok {
		return r, fmt.Errorf("it is no name of a secret, such as %sNAME", secretScheme)
	}
	switch scheme += "://"; scheme {
	case secretScheme, gatewayScheme:
		r.kind, r.gateway = secrets.Secret, scheme == gatewayScheme
	case configMapScheme:
		r.kind, r.roots = secrets.ConfigMap, true
	case builtinScheme:
		return r, errors.New("the workload's own certificate comes from its agent, not from here")
	case invalidScheme:
		return r, errors.New("what names it is not valid")
	default:
		return r, fmt.Errorf("names that begin with %s are not known here", scheme)
	}
	r.name = path
	if in, name, whole := strings.Cut(path, "/"); whole {
		r.namespace, r.name = in, name
	} else if scheme != secretScheme {
		return r, fmt.Errorf("it names no namespace: it must be %sNAMESPACE/NAME", scheme)
	}
	if r.namespace == "" || r.name == "" || strings.ContainsAny(r.name, "/@") || strings.Contains(r.namespace, "@") {
		return r, fmt.Errorf("it must be %sNAMESPACE/NAME, with both", scheme)
	}
	return r, nil
}

// objects are those that may have what is meant, in the order in which they are looked for. The
// roots of a credential are its object NAME-cacert, or else in the object itself.
// Source: Istio, ServerTLSSettings.credentialName.
func (r reference) objects() []secrets.Object {
	own := secrets.Object{Kind: r.kind, Namespace: r.namespace, Name: r.name}
	if !r.roots || r.kind == secrets.ConfigMap {
		return []secrets.Object{own}
	}
	apart := own
	apart.Name += rootsSuffix
	return []secrets.Object{apart, own}
}
