package ingress

import (
	"fmt"
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/internal/derived"
	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// note is what is to be said of an Ingress, at a field of it that may be empty.
type note struct {
	severity                             finding.Severity
	namespace, name, source, field, text string
}

func noteOn(o *object, field, format string, args ...any) note {
	return note{finding.Warning, o.Namespace, o.Name, o.Row.Source, field, fmt.Sprintf(format, args...)}
}

func (n note) fault() kinds.Fault {
	file, line, column := derived.Place(n.source)
	return kinds.Fault{
		File: file, Line: line, Column: column, Kind: "Ingress", Namespace: n.namespace, Name: n.name, Severity: n.severity, Field: n.field, Message: n.text,
	}
}

func pathField(rule, path int) string {
	return "spec.rules[" + strconv.Itoa(rule) + "].http.paths[" + strconv.Itoa(path) + "]"
}

// notesOf are what is to be said of an Ingress by itself: it is served as far as it is right.
func (x *graph) notesOf(c *incr.Ctx, s served) []note {
	if s.verdict != ingress.Ours {
		return unserved(s)
	}
	var out []note
	say := func(field, format string, args ...any) { out = append(out, noteOn(s.of, field, format, args...)) }
	spec := &s.of.Spec
	if spec.DefaultBackend != nil {
		say("spec.defaultBackend", "is not served; write a rule without a host, with the path / and pathType: Prefix")
	}
	for i, tls := range spec.TLS {
		if tls.SecretName == "" {
			say("spec.tls["+strconv.Itoa(i)+"]", "has no secretName: its hosts are not served by HTTPS")
		}
	}
	for i, r := range spec.Rules {
		if r.HTTP == nil {
			say("spec.rules["+strconv.Itoa(i)+"]", "has no paths, and is not served")
			continue
		}
		for j, p := range r.HTTP.Paths {
			port, why := x.port(c, s.of.Namespace, p.Backend.Service)
			if why == "" {
				why = x.missing(c, s.of.Namespace, p.Backend.Service.Name, port)
			}
			if why != "" {
				say(pathField(i, j)+".backend", "%s", why)
			}
		}
	}
	return out
}

// missing says that a service, or its port, is not there; empty: it is.
func (x *graph) missing(c *incr.Ctx, namespace, name string, port uint32) string {
	s := x.service(c, namespace, name)
	if s == nil {
		return fmt.Sprintf("service %s/%s is not known: requests fail", namespace, name)
	}
	for _, p := range s.Ports {
		if p.Number == port {
			return ""
		}
	}
	return fmt.Sprintf("service %s/%s has no port %d: requests fail", namespace, name, port)
}

// unserved says why an Ingress is not served; nothing where it is somebody else's.
func unserved(s served) []note {
	var why string
	switch s.verdict {
	case ingress.Off:
		why = "is not served: the mesh's ingressControllerMode is OFF"
	case ingress.NoClass:
		why = "is not served: it names no class, and the mesh's ingressControllerMode is STRICT; set ingressClassName, or the mode DEFAULT"
	case ingress.UnknownClass:
		why = fmt.Sprintf("is not served: there is no IngressClass %s; one with controller %s is served", *s.of.Spec.IngressClassName, ingress.Controller)
	default:
		return nil
	}
	n := noteOn(s.of, "", "%s", why)
	n.severity = finding.Info
	return []note{n}
}
