package derive

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// Names of credentials, as proxies ask for them. Source: Istio, ServerTLSSettings.credentialName.
const (
	gatewayScheme   = "kubernetes-gateway://"
	configMapScheme = "configmap://"
	builtin         = "builtin://"
	invalid         = "invalid://"
)

// certificatesAtMost is how many certificates a server may have.
const certificatesAtMost = 2

// tls makes the settings of a listener's TLS; nil: it has none.
func (f *fronting) tls(l gateway.Listener, by owner) (*networking.ServerTLSSettings, *status.Problem) {
	if l.TLS == nil {
		return nil, nil
	}
	out := &networking.ServerTLSSettings{}
	if or(l.TLS.Mode, gateway.TLSModeTerminate) == gateway.TLSModePassthrough {
		out.Mode = networking.ServerTLSSettings_PASSTHROUGH
		if passesAutomatically(by.row.Labels, l) {
			out.Mode = networking.ServerTLSSettings_AUTO_PASSTHROUGH
		}
	} else if done, problem := f.terminate(l, by, out); done || problem != nil {
		return out, problem
	}
	out.CipherSuites = ciphers(string(l.TLS.Options[cipherSuites]))
	return out, nil
}

// terminate adds certificates and what clients must show; done: the workload's own are served.
func (f *fronting) terminate(l gateway.Listener, by owner, out *networking.ServerTLSSettings) (done bool, problem *status.Problem) {
	mode := string(l.TLS.Options[terminateMode])
	out.Mode = networking.ServerTLSSettings_SIMPLE
	switch mode {
	case "MUTUAL":
		out.Mode = networking.ServerTLSSettings_MUTUAL
	case "OPTIONAL_MUTUAL":
		out.Mode = networking.ServerTLSSettings_OPTIONAL_MUTUAL
	case "ISTIO_SIMPLE":
		out.CredentialName = builtin
		return true, nil
	case "ISTIO_MUTUAL":
		out.Mode = networking.ServerTLSSettings_ISTIO_MUTUAL
		return true, nil
	}
	problem = f.certificates(l.TLS.CertificateRefs, by, out)
	if problem != nil || out.CredentialName == "" && len(out.CredentialNames) == 0 {
		return true, problem
	}
	return false, f.clients(l.Port, mode, by, out)
}

// certificates adds the certificates that can be used. It is a problem if none can.
func (f *fronting) certificates(refs []gateway.SecretObjectReference, by owner, out *networking.ServerTLSSettings) *status.Problem {
	if len(refs) > certificatesAtMost {
		return status.TooManyCertificates(certificatesAtMost)
	}
	names, problem := []string{}, (*status.Problem)(nil)
	for _, ref := range refs {
		name, wrong := f.certificate(ref, by)
		if wrong != nil {
			problem = status.Join(problem, wrong)
			continue
		}
		names = append(names, name)
	}
	switch len(names) {
	case 0:
		return problem
	case 1:
		out.CredentialName = names[0]
	default:
		out.CredentialNames = names
	}
	return nil
}

// certificate returns the name of a certificate that an object may have.
func (f *fronting) certificate(ref gateway.SecretObjectReference, by owner) (string, *status.Problem) {
	if refer(ref.Group, ref.Kind, secretKind) != secretKind {
		return "", status.CertificateKind(ref)
	}
	namespace := string(or(ref.Namespace, gateway.Namespace(by.namespace)))
	if namespace != by.namespace && !f.permits(by.kind, by.namespace, secretKind, namespace, string(ref.Name)) {
		return "", status.CertificateNotPermitted(string(ref.Name), namespace, by.namespace) // nor is said whether there is one
	}
	switch has := f.credential(Name{secrets.Secret, namespace, string(ref.Name)}); {
	case has.Missing:
		return "", status.NoCertificate(ref, namespace)
	case has.Pair != "":
		return "", status.BadCertificate(ref, has.Pair)
	}
	return gatewayScheme + namespace + "/" + string(ref.Name), nil
}

// clients adds what clients must show, as the Gateway says for all listeners or those of a port.
// Source: Gateway API, GatewayTLSConfig.frontend.
func (f *fronting) clients(port gateway.PortNumber, mode string, by owner, out *networking.ServerTLSSettings) *status.Problem {
	validation := f.validation(port)
	if validation == nil || len(validation.CACertificateRefs) == 0 {
		return nil
	}
	if len(validation.CACertificateRefs) > 1 {
		return status.ManyRoots()
	}
	ref := validation.CACertificateRefs[0]
	namespace := string(or(ref.Namespace, gateway.Namespace(by.namespace)))
	of := kind{string(ref.Group), string(ref.Kind)}
	if of != configMapKind && of != secretKind {
		return status.RootsKind(ref)
	}
	name := string(ref.Name) + secrets.RootsSuffix
	// As istiod: what is granted is the object of the roots' name.
	if namespace != by.namespace && !f.permits(by.kind, by.namespace, of, namespace, string(ref.Name)) &&
		!f.permits(by.kind, by.namespace, of, namespace, name) {
		return status.RootsNotPermitted(string(ref.Name), namespace, by.namespace)
	}
	switch has := f.credential(Name{of.Kind, namespace, string(ref.Name)}); {
	case has.Missing:
		return status.NoRoots(ref, namespace)
	case has.Roots != "":
		return status.BadRoots(ref, has.Roots)
	}
	scheme := configMapScheme
	if of == secretKind {
		scheme = gatewayScheme
	}
	out.CaCertCredentialName = scheme + namespace + "/" + name
	insecure := validation.Mode == gateway.AllowInsecureFallback
	out.Mode = networking.ServerTLSSettings_MUTUAL
	if insecure {
		out.Mode = networking.ServerTLSSettings_OPTIONAL_MUTUAL
	}
	switch mode {
	case "MUTUAL":
		out.Mode, insecure = networking.ServerTLSSettings_MUTUAL, false
	case "OPTIONAL_MUTUAL":
		out.Mode, insecure = networking.ServerTLSSettings_OPTIONAL_MUTUAL, false
	}
	out.InsecureSkipVerify = wrapperspb.Bool(insecure)
	return nil
}

// validation is what the Gateway says of clients at a port; nil: nothing.
func (f *fronting) validation(port gateway.PortNumber) *gateway.FrontendTLSValidation {
	if f.of.Spec.TLS == nil || f.of.Spec.TLS.Frontend == nil {
		return nil
	}
	for _, p := range f.of.Spec.TLS.Frontend.PerPort {
		if p.Port == port {
			return p.TLS.Validation
		}
	}
	return f.of.Spec.TLS.Frontend.Default.Validation
}

// clientCertificate names the certificate that the Gateway shows to backends, or says what is wrong
// with it. It is empty where there is none.
func (w world) clientCertificate(g *gatewayObject) (string, *status.Problem) {
	if g.Spec.TLS == nil || g.Spec.TLS.Backend == nil || g.Spec.TLS.Backend.ClientCertificateRef == nil {
		return "", nil
	}
	ref := *g.Spec.TLS.Backend.ClientCertificateRef
	if refer(ref.Group, ref.Kind, secretKind) != secretKind {
		return "", status.ClientCertificateKind(ref)
	}
	namespace := string(or(ref.Namespace, gateway.Namespace(g.Namespace)))
	if namespace != g.Namespace && !w.permits(gatewayKind, g.Namespace, secretKind, namespace, string(ref.Name)) {
		return "", status.ClientCertificateNotPermitted(string(ref.Name), namespace, g.Namespace)
	}
	switch has := w.credential(Name{secrets.Secret, namespace, string(ref.Name)}); {
	case has.Missing:
		return "", status.NoClientCertificate(ref, namespace)
	case has.Pair != "":
		return "", status.BadClientCertificate(ref, has.Pair)
	}
	return gatewayScheme + namespace + "/" + string(ref.Name), nil
}

// parameters says what is wrong with the object that has the Gateway's parameters.
func (w world) parameters(g *gatewayObject) *status.Problem {
	if g.Spec.Infrastructure == nil || g.Spec.Infrastructure.ParametersRef == nil {
		return nil
	}
	ref := *g.Spec.Infrastructure.ParametersRef
	if (kind{string(ref.Group), string(ref.Kind)}) != configMapKind {
		return status.ParametersKind(ref)
	}
	if has := w.credential(Name{secrets.ConfigMap, g.Namespace, ref.Name}); has.Missing {
		return status.NoParameters(g.Namespace, ref.Name)
	}
	return nil
}

// known are the cipher suites that proxies take. Source: Istio, ServerTLSSettings.cipherSuites.
var known = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
	"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
}

// ciphers are those of a list, parted by commas, that are known; nil: what proxies have by default.
func ciphers(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); slices.Contains(known, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
