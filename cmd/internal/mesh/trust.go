package mesh

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
)

// trusted returns those of the identities that are of the mesh's trust domain or an alias, and
// those that are of none, such as names of hosts. Source: Istio, MeshConfig.trustDomain and
// trustDomainAliases.
func trusted(identities []string, rows func(table string) []*pb.Row) ([]string, error) {
	domains, err := domainsOf(rows(state.Mesh))
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(identities), func(id string) bool {
		domain, ok := domainOf(id)
		return ok && !slices.Contains(domains, domain)
	})
	if len(own) > 0 || len(identities) == 0 {
		return own, nil
	}
	return nil, status.Errorf(codes.PermissionDenied, "the caller is %s, of a trust domain that is none of the mesh's (%s); "+
		"if its callers are meant to come here, add it to trustDomainAliases of the mesh's settings, or let those of all domains come (--foreignTrustDomains)",
		budget.Line(strings.Join(identities, ", "), maxReason), budget.Line(strings.Join(domains, ", "), maxReason))
}

// domainOf is an identity's trust domain; ok is false for what is no SPIFFE ID.
func domainOf(identity string) (domain string, ok bool) {
	rest, ok := strings.CutPrefix(identity, istio.Scheme)
	domain, _, _ = strings.Cut(rest, "/")
	return domain, ok
}

// domainsOf are the mesh's trust domains, its own one first.
func domainsOf(settings []*pb.Row) ([]string, error) {
	m := &api.MeshConfig{}
	for _, row := range settings {
		if row.Key != state.Mesh {
			continue
		}
		if err := proto.Unmarshal(row.Payload, m); err != nil {
			return nil, status.Error(codes.Unavailable, "the mesh's settings, which name its trust domains, can't be read")
		}
	}
	return istio.TrustDomains(m.TrustDomain, m.TrustDomainAliases), nil
}
