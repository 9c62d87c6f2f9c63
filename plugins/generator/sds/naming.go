package sds

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// naming are the rows of Gateways and DestinationRules that name credentials, by the name that
// proxies ask for, without secrets.RootsSuffix. Rows that can't be read name nothing; their source
// says so.
type naming struct {
	by    map[string]map[state.Name]bool
	names map[state.Name][]string
}

func newNaming() naming {
	return naming{by: map[string]map[state.Name]bool{}, names: map[state.Name][]string{}}
}

// change takes in what rows of a table name now.
func (n naming) change(s *state.State, table string, keys []string) {
	for _, key := range keys {
		at := state.Name{Table: table, Key: key}
		for _, name := range n.names[at] {
			if delete(n.by[name], at); len(n.by[name]) == 0 {
				delete(n.by, name)
			}
		}
		delete(n.names, at)
		if row := s.Row(table, key); row != nil {
			n.add(at, named(table, row))
		}
	}
}

// add notes a row that names credentials; an empty name is none.
func (n naming) add(at state.Name, names []string) {
	for _, name := range names {
		if name == "" {
			continue
		}
		asked := strings.TrimSuffix(secrets.AskedFor(name), secrets.RootsSuffix)
		if n.by[asked] == nil {
			n.by[asked] = map[state.Name]bool{}
		}
		if !n.by[asked][at] {
			n.by[asked][at] = true
			n.names[at] = append(n.names[at], asked)
		}
	}
}

// named are the credentials that a row names.
func named(table string, row *pb.Row) (names []string) {
	if table == kinds.Gateway {
		spec, err := kinds.Decode[*networking.Gateway](row)
		if err != nil {
			return nil
		}
		return gatewayNames(row, spec)
	}
	spec, err := kinds.Decode[*networking.DestinationRule](row)
	if err != nil {
		return nil
	}
	names = policyCredentials(spec.TrafficPolicy)
	for _, subset := range spec.Subsets {
		names = append(names, policyCredentials(subset.GetTrafficPolicy())...)
	}
	return names
}

// gatewayNames are the credentials that a Gateway names, for its servers and for what its proxies
// show to backends.
func gatewayNames(row *pb.Row, spec *networking.Gateway) (names []string) {
	for _, server := range spec.Servers {
		names = append(names, credentials(server.GetTls())...)
	}
	return append(names, row.Annotations[istio.BackendCertificate])
}

// credentials are those that a server names.
func credentials(s *networking.ServerTLSSettings) []string {
	return append(slices.Clone(s.GetCredentialNames()), s.GetCredentialName(), s.GetCaCertCredentialName())
}

// policyCredentials are those that a policy names for clients.
func policyCredentials(p *networking.TrafficPolicy) []string {
	names := []string{p.GetTls().GetCredentialName()}
	for _, port := range p.GetPortLevelSettings() {
		names = append(names, port.GetTls().GetCredentialName())
	}
	return names
}

// of returns the rows that name what proxies of a namespace ask for, in order: those of their own
// namespace, or, where it has none, of others, whose Gateways may be theirs, too.
func (n naming) of(name, namespace string) []state.Name {
	all := n.by[strings.TrimSuffix(name, secrets.RootsSuffix)]
	var own []state.Name
	for at := range all {
		if in, _ := kinds.SplitKey(at.Key); in == namespace {
			own = append(own, at)
		}
	}
	if own == nil {
		own = slices.Collect(maps.Keys(all))
	}
	slices.SortFunc(own, func(a, b state.Name) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Key, b.Key))
	})
	return own
}
