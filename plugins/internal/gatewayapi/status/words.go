package status

import (
	"fmt"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// SkippedAddresses says that addresses of a Gateway are not used: only names of hosts are.
func SkippedAddresses(list []string) *Problem {
	return &Problem{string(gateway.GatewayReasonUnsupportedAddress), fmt.Sprintf("only Hostname is supported, ignoring %v", list)}
}

// ParametersKind says that parameters of a Gateway are of a kind that is not read.
func ParametersKind(ref gateway.LocalParametersReference) *Problem {
	return &Problem{
		string(gateway.GatewayReasonInvalidParameters),
		fmt.Sprintf("Unsupported parametersRef group/kind %s/%s, only ConfigMap is supported", ref.Group, ref.Kind),
	}
}

// NoParameters says that the parameters of a Gateway are missing.
func NoParameters(namespace, name string) *Problem {
	return &Problem{string(gateway.GatewayReasonInvalidParameters), fmt.Sprintf("parametersRef ConfigMap %s/%s does not exist", namespace, name)}
}

func unsupported(format string, args ...any) *Problem {
	return &Problem{string(gateway.ListenerReasonUnsupportedProtocol), fmt.Sprintf(format, args...)}
}

// NoPort says that a listener of a ListenerSet needs a port.
func NoPort(p gateway.ProtocolType) *Problem {
	return unsupported("protocol %v requires a port to be set", p)
}

// OnlyWaypoints says that a protocol is for waypoints alone.
func OnlyWaypoints(p gateway.ProtocolType) *Problem {
	return unsupported("protocol %q is only supported for waypoint proxies", p)
}

// Unsupported says that a protocol is not served.
func Unsupported(p gateway.ProtocolType) *Problem {
	switch upper := strings.ToUpper(string(p)); upper {
	case string(p):
	case "HTTP", "HTTPS", "TLS", "TCP", "HBONE":
		return unsupported("protocol %q is unsupported. hint: %q (uppercase) may be supported", p, upper)
	}
	return unsupported("protocol %q is unsupported", p)
}

// NotWaypoint and NotEastWest say what listeners such Gateways have.
func NotWaypoint() *Problem {
	return unsupported(`Expected a single listener on port 15008 with protocol "HBONE"`)
}

// NotEastWest says what listeners the gateways between networks of ambient mode have.
func NotEastWest() *Problem {
	return unsupported(`East-west gateway listeners must be either port 15008 with protocol "HBONE" and TLS.Mode == Terminate, ` +
		`or TLS with TLS.Mode == Passthrough`)
}

// secretRef writes a reference as istiod does.
func secretRef(r gateway.SecretObjectReference) string {
	return fmt.Sprintf("%s/%s/%s.%s", text(r.Group), text(r.Kind), r.Name, text(r.Namespace))
}

func objectRef(r gateway.ObjectReference) string {
	return fmt.Sprintf("%s/%s/%s.%s", r.Group, r.Kind, r.Name, text(r.Namespace))
}

func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

func badCertificate(format string, args ...any) *Problem {
	return &Problem{string(gateway.ListenerReasonInvalidCertificateRef), fmt.Sprintf(format, args...)}
}

// TooManyCertificates says how many a listener may have.
func TooManyCertificates(most int) *Problem {
	return badCertificate("TLS mode can only support up to %d server certificates", most)
}

// CertificateKind says that a certificate is in no Secret.
func CertificateKind(ref gateway.SecretObjectReference) *Problem {
	return badCertificate("invalid certificate reference %v, only secret is allowed", secretRef(ref))
}

// NoCertificate says that a certificate is missing.
func NoCertificate(ref gateway.SecretObjectReference, namespace string) *Problem {
	return badCertificate("invalid certificate reference %v, secret %v/%v not found", secretRef(ref), namespace, ref.Name)
}

// BadCertificate says that a certificate can't be used.
func BadCertificate(ref gateway.SecretObjectReference, why string) *Problem {
	return badCertificate("invalid certificate reference %v, %s", secretRef(ref), why)
}

// CertificateNotPermitted says that no ReferenceGrant lets the Gateway have it.
func CertificateNotPermitted(name, namespace, from string) *Problem {
	return &Problem{string(gateway.ListenerReasonRefNotPermitted), fmt.Sprintf(
		"certificateRef %v/%v not accessible to a Gateway in namespace %q (missing a ReferenceGrant?)", name, namespace, from)}
}

func badRoots(format string, args ...any) *Problem {
	return &Problem{string(gateway.ListenerReasonInvalidCACertificateRef), fmt.Sprintf(format, args...)}
}

// ManyRoots says that one object may have the roots for clients.
func ManyRoots() *Problem { return badRoots("only one caCertificateRef is supported") }

// NoRoots says that roots are missing.
func NoRoots(ref gateway.ObjectReference, namespace string) *Problem {
	kind := strings.ToLower(string(ref.Kind))
	return badRoots("invalid CA certificate reference %v, %s %v/%v not found", objectRef(ref), kind, namespace, ref.Name)
}

// BadRoots says that roots can't be used.
func BadRoots(ref gateway.ObjectReference, why string) *Problem {
	return badRoots("invalid CA certificate reference %v, %s", objectRef(ref), why)
}

// RootsKind says that roots are of a kind that has none.
func RootsKind(ref gateway.ObjectReference) *Problem {
	return &Problem{
		string(gateway.ListenerReasonInvalidCACertificateKind),
		fmt.Sprintf("invalid CA certificate reference %v, only secret and configmap are allowed", objectRef(ref)),
	}
}

// RootsNotPermitted says that no ReferenceGrant lets the Gateway have them.
func RootsNotPermitted(name, namespace, from string) *Problem {
	return &Problem{string(gateway.ListenerReasonRefNotPermitted), fmt.Sprintf(
		"caCertificateRef %v/%v not accessible to a Gateway in namespace %q (missing a ReferenceGrant?)", namespace, name, from)}
}

func badClient(format string, args ...any) *Problem {
	return &Problem{string(gateway.GatewayReasonInvalidClientCertificateRef), fmt.Sprintf(format, args...)}
}

// ClientCertificateKind says that the certificate for backends is in no Secret.
func ClientCertificateKind(ref gateway.SecretObjectReference) *Problem {
	return badClient("invalid clientCertificateRef %v, only secret is allowed", secretRef(ref))
}

// NoClientCertificate says that it is missing.
func NoClientCertificate(ref gateway.SecretObjectReference, namespace string) *Problem {
	return badClient("invalid clientCertificateRef %v, secret %v/%v not found", secretRef(ref), namespace, ref.Name)
}

// BadClientCertificate says that it can't be used.
func BadClientCertificate(ref gateway.SecretObjectReference, why string) *Problem {
	return badClient("invalid clientCertificateRef %v, %s", secretRef(ref), why)
}

// ClientCertificateNotPermitted says that no ReferenceGrant lets the Gateway have it.
func ClientCertificateNotPermitted(name, namespace, from string) *Problem {
	return &Problem{string(gateway.GatewayReasonRefNotPermitted), fmt.Sprintf(
		"clientCertificateRef %v/%v not accessible to a Gateway in namespace %q (missing a ReferenceGrant?)", name, namespace, from)}
}
