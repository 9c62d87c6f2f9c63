package sds

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// naming are the rows of Gateways and DestinationRules that name credentials, by the name that
// proxies ask for, without secrets.RootsSuffix. Rows that can't be read name nothing; their source
// says so.
type naming map[string][]state.Name

func namingOf(s *state.State) naming {
	n := naming{}
	for key, row := range s.Table(kinds.Gateway).All() {
		spec, err := kinds.Decode[*networking.Gateway](row)
		if err != nil {
			continue
		}
		at := state.Name{Table: kinds.Gateway, Key: key}
		for _, server := range spec.Servers {
			for _, name := range credentials(server.GetTls()) {
				n.add(name, at)
			}
		}
	}
	for key, row := range s.Table(kinds.DestinationRule).All() {
		spec, err := kinds.Decode[*networking.DestinationRule](row)
		if err != nil {
			continue
		}
		at := state.Name{Table: kinds.DestinationRule, Key: key}
		n.addPolicy(spec.TrafficPolicy, at)
		for _, subset := range spec.Subsets {
			n.addPolicy(subset.GetTrafficPolicy(), at)
		}
	}
	return n
}

// credentials are those that a server names.
func credentials(s *networking.ServerTLSSettings) []string {
	return append(slices.Clone(s.GetCredentialNames()), s.GetCredentialName(), s.GetCaCertCredentialName())
}

func (n naming) addPolicy(p *networking.TrafficPolicy, at state.Name) {
	n.add(p.GetTls().GetCredentialName(), at)
	for _, port := range p.GetPortLevelSettings() {
		n.add(port.GetTls().GetCredentialName(), at)
	}
}

// add notes a row that names a credential; an empty name is none.
func (n naming) add(name string, at state.Name) {
	if name == "" {
		return
	}
	if asked := strings.TrimSuffix(secrets.AskedFor(name), secrets.RootsSuffix); !slices.Contains(n[asked], at) {
		n[asked] = append(n[asked], at)
	}
}

// of returns the rows that name what proxies of a namespace ask for: those of their own namespace,
// or, where it has none, of others, whose Gateways may be theirs, too.
func (n naming) of(name, namespace string) []state.Name {
	all := n[strings.TrimSuffix(name, secrets.RootsSuffix)]
	var own []state.Name
	for _, at := range all {
		if in, _ := kinds.SplitKey(at.Key); in == namespace {
			own = append(own, at)
		}
	}
	if own != nil {
		return own
	}
	return all
}
