package secrets

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Beginnings of names that proxies ask for.
const (
	secretScheme    = "kubernetes://"
	gatewayScheme   = "kubernetes-gateway://"
	configMapScheme = "configmap://"
	builtinScheme   = "builtin://"
	invalidScheme   = "invalid://"
)

// ExternalScheme begins credentials that others serve where somebody does, and that are Secrets
// otherwise.
const ExternalScheme = "sds://"

// RootsSuffix makes a credential's name that of the roots which go with it.
const RootsSuffix = "-cacert"

// Reference is what a name means.
type Reference struct {
	// Text is the name without RootsSuffix.
	Text                  string
	Kind, Namespace, Name string
	// Gateway: a Gateway says who may have it.
	Gateway bool
	// Roots: what to trust, in place of a certificate with its key.
	Roots bool
}

// ParseReference reads a name that a proxy of a namespace asks for. An error says why there can be
// no such object, and repeats nothing of a long name.
func ParseReference(name, namespace string) (Reference, error) {
	r := Reference{Namespace: namespace}
	r.Text, r.Roots = strings.CutSuffix(name, RootsSuffix)
	scheme, path, ok := strings.Cut(r.Text, "://")
	if !ok {
		return r, fmt.Errorf("it is no name of a secret, such as %sNAME", secretScheme)
	}
	switch scheme += "://"; scheme {
	case secretScheme, gatewayScheme:
		r.Kind, r.Gateway = Secret, scheme == gatewayScheme
	case configMapScheme:
		r.Kind, r.Roots = ConfigMap, true
	case builtinScheme:
		return r, errors.New("the workload's own certificate comes from its agent, not from here")
	case invalidScheme:
		return r, errors.New("what names it is not valid")
	default:
		return r, fmt.Errorf("names that begin with %.40q are not known here", scheme)
	}
	r.Name = path
	if in, name, whole := strings.Cut(path, "/"); whole {
		r.Namespace, r.Name = in, name
	} else if scheme != secretScheme {
		return r, fmt.Errorf("it names no namespace: it must be %sNAMESPACE/NAME", scheme)
	}
	if r.Namespace == "" || r.Name == "" || strings.ContainsAny(r.Name, "/@") || strings.Contains(r.Namespace, "@") {
		return r, fmt.Errorf("it must be %sNAMESPACE/NAME, with both", scheme)
	}
	return r, possible(r.Namespace, r.Name)
}

// possible says why no object can have a name, if so.
// Source: Kubernetes, Object Names and IDs: names are DNS subdomains, those of namespaces labels
// (RFC 1123).
func possible(namespace, name string) error {
	switch {
	case len(namespace) > validation.DNS1123LabelMaxLength:
		return fmt.Errorf("there can be no such namespace: its name has %d characters, and may have %d", len(namespace), validation.DNS1123LabelMaxLength)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return fmt.Errorf("there can be no namespace %q: it must be a DNS label, of a-z, 0-9 and -", namespace)
	case len(name) > validation.DNS1123SubdomainMaxLength:
		return fmt.Errorf("there can be no such object: its name has %d characters, and may have %d", len(name), validation.DNS1123SubdomainMaxLength)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("there can be no object %q: its name must be a DNS subdomain, of a-z, 0-9, dots and dashes", name)
	}
	return nil
}

// Objects are those that may have what is meant, in the order in which they are looked for. The
// roots of a credential are its object NAME-cacert, or else in the object itself.
// Source: Istio, ServerTLSSettings.credentialName.
func (r Reference) Objects() []Object {
	own := Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if !r.Roots || r.Kind == ConfigMap {
		return []Object{own}
	}
	apart := own
	if apart.Name += RootsSuffix; possible(apart.Namespace, apart.Name) != nil {
		return []Object{own}
	}
	return []Object{apart, own}
}

// AskedFor returns the name by which proxies ask for a credential.
// Source: Istio, ServerTLSSettings.credentialName; names without a scheme are of Kubernetes.
func AskedFor(name string) string {
	name = strings.TrimPrefix(name, ExternalScheme)
	if !strings.Contains(name, "://") {
		name = secretScheme + name
	}
	return name
}
