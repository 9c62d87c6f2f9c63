// Package authn knows who workloads must be: which connections take mutual TLS, and which tokens
// requests may carry.
package authn

import (
	"encoding/json"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Mode is what a workload's port takes.
type Mode string

// Modes.
const (
	// Permissive is mutual TLS or plain text.
	Permissive Mode = "PERMISSIVE"
	Strict     Mode = "STRICT"
	// Disable is plain text only.
	Disable Mode = "DISABLE"
	unset   Mode = ""
)

func modeOf(m *security.PeerAuthentication_MutualTLS) Mode {
	switch m.GetMode() {
	case security.PeerAuthentication_MutualTLS_DISABLE:
		return Disable
	case security.PeerAuthentication_MutualTLS_PERMISSIVE:
		return Permissive
	case security.PeerAuthentication_MutualTLS_STRICT:
		return Strict
	default:
		return unset
	}
}

func (m Mode) or(inherited Mode) Mode {
	if m == unset {
		return inherited
	}
	return m
}

// Policies are the PeerAuthentications that count in a namespace: the mesh's mode with the
// namespace's own over it, and those of workloads, the oldest first.
type Policies struct {
	Mode      Mode       `json:"mode"`
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload is a policy for workloads with labels.
type Workload struct {
	Labels map[string]string `json:"labels"`
	Modes
}

// Modes are what a workload takes: its mode, and those of the ports for which its policy says one.
type Modes struct {
	Mode  Mode            `json:"mode"`
	Ports map[uint32]Mode `json:"ports,omitempty"`
}

// In makes the policies of a namespace of those in the root namespace and its own, each with the
// oldest first. A policy in the root namespace that selects workloads means nothing.
func In(root, own []*config.PeerAuthentication) Policies {
	out := Policies{Mode: first(own).or(first(root).or(Permissive))}
	for _, p := range own {
		labels := p.Spec.GetSelector().GetMatchLabels()
		if len(labels) == 0 {
			continue
		}
		w := Workload{Labels: labels, Modes: Modes{Mode: modeOf(p.Spec.Mtls).or(out.Mode)}}
		for port, m := range p.Spec.PortLevelMtls {
			if w.Ports == nil {
				w.Ports = map[uint32]Mode{}
			}
			w.Ports[port] = modeOf(m).or(w.Mode)
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out
}

// first is the mode of the oldest policy without a selector.
func first(list []*config.PeerAuthentication) Mode {
	for _, p := range list {
		if len(p.Spec.GetSelector().GetMatchLabels()) == 0 {
			return modeOf(p.Spec.Mtls)
		}
	}
	return unset
}

// For is what a workload takes: the oldest policy that selects it counts.
func (p Policies) For(labels map[string]string) Modes {
	for _, w := range p.Workloads {
		if istio.Selects(w.Labels, labels) {
			return w.Modes
		}
	}
	return Modes{Mode: p.Mode}
}

// Port is what a port takes.
func (m Modes) Port(port uint32) Mode {
	if mode, ok := m.Ports[port]; ok {
		return mode
	}
	return m.Mode.or(Permissive)
}

// Equal reports whether policies mean the same.
func (p Policies) Equal(o Policies) bool { return p.text() == o.text() }

func (p Policies) text() string { return encode(p) }

// Text writes modes as a part of a view's key, the same for equal ones; empty for what everybody
// has without policies.
func (m Modes) Text() string {
	if m.Mode == Permissive && len(m.Ports) == 0 {
		return ""
	}
	return encode(m)
}

// ParseModes reads Text.
func ParseModes(text string) Modes {
	out := Modes{Mode: Permissive}
	if text != "" {
		_ = json.Unmarshal([]byte(text), &out)
	}
	return out
}

// Refusals writes down which workloads refuse mutual TLS, so that clients don't try: the same text
// for policies that mean the same to clients, empty if none does.
func (p Policies) Refusals() string {
	out := Policies{Mode: refusal(p.Mode)}
	refuses := out.Mode == Disable
	for _, w := range p.Workloads {
		r := Workload{Labels: w.Labels, Modes: Modes{Mode: refusal(w.Mode), Ports: map[uint32]Mode{}}}
		for port, m := range w.Ports {
			if refusal(m) != r.Mode {
				r.Ports[port] = refusal(m)
			}
		}
		refuses = refuses || r.Mode == Disable || len(r.Ports) > 0
		out.Workloads = append(out.Workloads, r)
	}
	if !refuses {
		return ""
	}
	return encode(out)
}

func refusal(m Mode) Mode {
	if m == Disable {
		return Disable
	}
	return Permissive
}

// ParseRefusals reads Refusals and returns who refuses.
func ParseRefusals(text string) func(labels map[string]string, port uint32) bool {
	if text == "" {
		return func(map[string]string, uint32) bool { return false }
	}
	var p Policies
	_ = json.Unmarshal([]byte(text), &p)
	return func(labels map[string]string, port uint32) bool { return p.For(labels).Port(port) == Disable }
}

// encode writes a value; maps come out sorted.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
