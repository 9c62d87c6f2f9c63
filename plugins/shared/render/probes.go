package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"istio.io/api/annotation"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probersVariable tells the agent what it is to ask in the kubelet's place.
const probersVariable = "ISTIO_KUBE_APP_PROBERS"

// prober is a probe that the agent makes: the kubelet asks the agent, which the proxy's mutual TLS
// does not stop, and that asks the workload.
type prober struct {
	HTTPGet        *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket      *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC           *corev1.GRPCAction      `json:"grpc,omitempty"`
	TimeoutSeconds int32                   `json:"timeoutSeconds,omitempty"`
}

// probed is a place of a container where a probe can be.
type probed struct {
	path string
	http **corev1.HTTPGetAction
	tcp  **corev1.TCPSocketAction
	grpc **corev1.GRPCAction
	wait int32
}

// probesOf returns the places of a container that have a probe or a hook.
func probesOf(c *corev1.Container) (all []probed) {
	probe := func(name string, p *corev1.Probe) {
		if p != nil {
			all = append(all, probed{fmt.Sprintf("/app-health/%s/%s", c.Name, name), &p.HTTPGet, &p.TCPSocket, &p.GRPC, p.TimeoutSeconds})
		}
	}
	probe("readyz", c.ReadinessProbe)
	probe("livez", c.LivenessProbe)
	probe("startupz", c.StartupProbe)
	hook := func(name string, h *corev1.LifecycleHandler) {
		if h != nil {
			all = append(all, probed{path: fmt.Sprintf("/app-lifecycle/%s/%s", c.Name, name), http: &h.HTTPGet, tcp: &h.TCPSocket})
		}
	}
	if c.Lifecycle != nil {
		hook("prestopz", c.Lifecycle.PreStop)
		hook("poststartz", c.Lifecycle.PostStart)
	}
	return all
}

// prober is what the agent is to ask; nil if it need not be asked. A port's name is looked up.
func (p *probed) prober(c *corev1.Container, agent int32) *prober {
	var port *intstr.IntOrString
	out := &prober{TimeoutSeconds: p.wait}
	switch {
	case *p.http != nil:
		out.HTTPGet = (*p.http).DeepCopy()
		port = &out.HTTPGet.Port
	case *p.tcp != nil:
		out.TCPSocket = (*p.tcp).DeepCopy()
		port = &out.TCPSocket.Port
	case p.grpc != nil && *p.grpc != nil:
		out.GRPC = (*p.grpc).DeepCopy()
		return out
	default:
		return nil
	}
	if port.Type == intstr.String {
		for _, of := range c.Ports {
			if of.Name == port.StrVal && of.Name != "" {
				*port = intstr.FromInt32(of.ContainerPort)
				return out
			}
		}
		return nil
	}
	if port.IntVal == agent {
		return nil
	}
	return out
}

// rewrite has the kubelet ask the agent.
func (p *probed) rewrite(agent int) {
	switch {
	case *p.http != nil:
	case *p.tcp != nil:
		*p.http, *p.tcp = &corev1.HTTPGetAction{}, nil
	case p.grpc != nil && *p.grpc != nil:
		*p.http, *p.grpc = &corev1.HTTPGetAction{}, nil
	default:
		return
	}
	h := *p.http
	h.Port, h.Path = intstr.FromInt(agent), p.path
	if h.Scheme == corev1.URISchemeHTTPS {
		h.Scheme = corev1.URISchemeHTTP
	}
}

// rewrites reports whether probes are rewritten: as the pod says, or the values.
func (i *injection) rewrites() bool {
	if yes, err := strconv.ParseBool(i.pod.Annotations[annotation.SidecarRewriteAppHTTPProbers.Name]); err == nil {
		return yes
	}
	return i.values.is("sidecarInjectorWebhook", "rewriteAppHTTPProbe")
}

// rewriteProbes has the agent asked in the workload's place.
func (i *injection) rewriteProbes() error {
	proxy := proxyOf(i.pod)
	if proxy == nil || !i.rewrites() {
		return nil
	}
	agent := int(i.statusPort())
	if text, ok := i.pod.Annotations[annotation.SidecarStatusPort.Name]; ok {
		agent, _ = strconv.Atoi(text)
	}
	all := map[string]*prober{}
	for _, list := range [][]corev1.Container{i.pod.Spec.InitContainers, i.pod.Spec.Containers} {
		for at := range list {
			c := &list[at]
			if c.Name == proxyName {
				continue
			}
			for _, p := range probesOf(c) {
				if own := p.prober(c, i.statusPort()); own != nil {
					all[p.path] = own
				}
				p.rewrite(agent)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return i.tell(proxy, all)
}

// tell tells the agent what to ask. What it was told when the pod was injected before still counts.
func (i *injection) tell(proxy *corev1.Container, all map[string]*prober) error {
	_, before := i.pod.Annotations[annotation.SidecarStatus.Name]
	at := slices.IndexFunc(proxy.Env, func(e corev1.EnvVar) bool { return before && e.Name == probersVariable })
	if at >= 0 {
		var was map[string]*prober
		if json.Unmarshal([]byte(proxy.Env[at].Value), &was) != nil {
			return nil
		}
		maps.Copy(all, was)
	} else {
		proxy.Env, at = append(proxy.Env, corev1.EnvVar{Name: probersVariable}), len(proxy.Env)
	}
	text, err := json.Marshal(all)
	proxy.Env[at].Value = string(text)
	return err
}
