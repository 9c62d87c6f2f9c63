package analysis

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const (
	portName     = "IST0118"
	externalPort = "IST0150"
	proxysUser   = "IST0144"
)

// proxyUser is the user whose connections are not intercepted: proxies run as it. Source: Istio,
// "Application Requirements", application UIDs.
const proxyUser = 1337

// podSpec is as much of a pod as is looked at.
type podSpec struct {
	SecurityContext securityContext `yaml:"securityContext"`
	Containers      []struct {
		Name            string
		SecurityContext securityContext `yaml:"securityContext"`
	}
}

type securityContext struct {
	RunAsUser int64 `yaml:"runAsUser"`
}

// serviceSpec is as much of a Service as is looked at.
type serviceSpec struct {
	Type  string
	Ports []servicePort
}

type servicePort struct {
	Name, Protocol string
	AppProtocol    string `yaml:"appProtocol"`
	Port           uint32
}

// looked are the kinds of Kubernetes' objects that are looked at themselves, with the version that
// counts.
var looked = map[string]string{"Namespace": "v1", "Pod": "v1", "Service": "v1", "Deployment": "apps/v1"}

// addObject takes an object of Kubernetes as one to look at.
func (r *Reader) addObject(o *object, namespace string, node *yaml.Node) {
	if version, ok := looked[o.Kind]; !ok || version != o.APIVersion {
		return
	}
	group, version, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		group, version = "", o.APIVersion
	}
	if o.Kind == "Namespace" {
		namespace = ""
	}
	at := Resource{
		Resource: finding.Resource{
			Group: group, Version: version, Kind: o.Kind, Namespace: namespace, Name: o.Metadata.Name,
			Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations, Node: node,
		},
		File: r.file, Line: node.Line, Column: node.Column,
	}
	var of struct{ Spec yaml.Node }
	_ = node.Decode(&of) // without a spec there is nothing to look at
	switch o.Kind {
	case "Pod":
		at.pod, at.podAt = &podSpec{}, "spec"
		_ = of.Spec.Decode(at.pod)
	case "Deployment":
		var template struct{ Template struct{ Spec podSpec } }
		_ = of.Spec.Decode(&template)
		at.pod, at.podAt = &template.Template.Spec, "spec.template.spec"
	case "Service":
		at.service = &serviceSpec{}
		_ = of.Spec.Decode(at.service)
	}
	r.Input.Resources = append(r.Input.Resources, at)
}

// proxysUsers finds containers that run as proxies do, so that what they say goes past these.
func proxysUsers(w *world) {
	for _, r := range w.resources {
		if r.pod == nil {
			continue
		}
		tell := func(at string) {
			w.report(r, finding.Warnf(proxysUser, at+".securityContext.runAsUser",
				"User %d is the proxy's: what it sends is not intercepted", proxyUser).WithHint("run the application as another user"))
		}
		if r.pod.SecurityContext.RunAsUser == proxyUser {
			tell(r.podAt)
		}
		for i, c := range r.pod.Containers {
			if c.Name != "istio-proxy" && c.SecurityContext.RunAsUser == proxyUser {
				tell(fmt.Sprintf("%s.containers[%d]", r.podAt, i))
			}
		}
	}
}

// managed is the label of what a control plane made for a Gateway.
const managed = "gateway.istio.io/managed"

// portNames finds ports of Services whose name says no protocol, so that it is guessed from what is
// sent. Those of ExternalName services are not: they have to say it.
func portNames(w *world) {
	for _, r := range w.resources {
		if r.service == nil || r.Labels[managed] != "" || r.Namespace == w.root() || strings.HasPrefix(r.Namespace, "kube-") {
			continue
		}
		for i, p := range r.service.Ports {
			at := fmt.Sprintf("spec.ports[%d]", i)
			external := r.service.Type == "ExternalName"
			switch {
			case external && (p.Name == "tcp" || !p.isSaid()):
				w.report(r, finding.Warnf(externalPort, at, "port %d of an ExternalName Service says no protocol, and would match all of TCP", p.Port).
					WithHint("name it after its protocol, such as https or tcp-db"))
			case !external && !p.isSaid():
				w.report(r, finding.Infof(portName, at, "the name of port %d (%q) says no protocol: it is guessed from what is sent", p.Port, p.Name).
					WithHint("name it PROTOCOL or PROTOCOL-SUFFIX, such as http-web, or set appProtocol"))
			}
		}
	}
}

// said are numbers of ports whose servers speak first, so that nothing is guessed there. Source:
// Istio, "Protocol Selection", server first protocols.
var said = []uint32{25, 53, 3306, 27017}

// isSaid reports whether a port says its protocol.
func (p servicePort) isSaid() bool {
	if p.Protocol != "" && p.Protocol != "TCP" {
		return true
	}
	if p.AppProtocol != "" {
		named := strings.ToLower(p.AppProtocol)
		return hosts.Protocol(named) != "" || slices.Contains([]string{"kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss"}, named)
	}
	if hosts.Protocol(p.Name) != "" {
		return true
	}
	before, _, _ := strings.Cut(p.Name, "-")
	return hosts.Protocol(before) != "" || strings.HasPrefix(strings.ToLower(p.Name), "grpc-web") || p.Name == "" && slices.Contains(said, p.Port)
}
