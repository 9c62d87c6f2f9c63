package ingress

import (
	mesh "istio.io/api/mesh/v1alpha1"
	networking "k8s.io/api/networking/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
)

const (
	// Controller is what an IngressClass says whose Ingresses are served.
	Controller = "istio.io/ingress-controller"
	// ClassAnnotation is the annotation by which Ingresses named their class before there were
	// IngressClasses.
	ClassAnnotation = "kubernetes.io/ingress.class"
)

// Settings are what the mesh's settings say of Ingresses.
// Source: Istio, MeshConfig, the fields of the same names.
type Settings struct {
	Mode                     mesh.MeshConfig_IngressControllerMode
	Class, Service, Selector string
}

// SettingsOf reads them.
func SettingsOf(m *mesh.MeshConfig) Settings {
	return Settings{m.GetIngressControllerMode(), m.GetIngressClass(), m.GetIngressService(), m.GetIngressSelector()}
}

// Verdict reports whether an Ingress is to be served.
type Verdict int

// The reasons for and against.
const (
	// Ours: it is to be served.
	Ours Verdict = iota
	// Off: it would be if the mesh served any.
	Off
	// Foreign: it is of a class that others serve.
	Foreign
	// NoClass: it names none, and the mesh serves those alone that do.
	NoClass
	// UnknownClass: it names one that is not there, and the mesh serves those alone that are its
	// own.
	UnknownClass
)

// Judge reports whether an Ingress is to be served. class returns an IngressClass, nil where there
// is none. The annotation counts before the field.
func (s Settings) Judge(o *objects.Object[networking.IngressSpec], class func(name string) *networking.IngressClassSpec) Verdict {
	if s.Mode != mesh.MeshConfig_OFF {
		return s.judge(o, class)
	}
	s.Mode = mesh.MeshConfig_DEFAULT
	if s.judge(o, class) == Ours {
		return Off
	}
	return Foreign
}

func (s Settings) judge(o *objects.Object[networking.IngressSpec], class func(name string) *networking.IngressClassSpec) Verdict {
	if name, ok := o.Row.Annotations[ClassAnnotation]; ok {
		if name == s.Class {
			return Ours
		}
		return Foreign
	}
	named := o.Spec.IngressClassName
	if named != nil {
		if c := class(*named); c != nil {
			if c.Controller == Controller {
				return Ours
			}
			return Foreign
		}
	}
	switch {
	case s.Mode == mesh.MeshConfig_DEFAULT:
		return Ours
	case named != nil:
		return UnknownClass
	}
	return NoClass
}

// Gateways selects the gateways that serve Ingresses.
func (s Settings) Gateways() map[string]string {
	const usual, label = "istio-ingressgateway", "istio"
	switch {
	case s.Selector != "":
		return map[string]string{label: s.Selector}
	case s.Service != usual && s.Service != "":
		return map[string]string{label: s.Service}
	}
	return map[string]string{label: "ingressgateway"}
}
