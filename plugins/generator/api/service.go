package api

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// synthetic adds a ServiceEntry for each service that comes from none. It has no endpoints: these
// are asked for by EDS. Of services that would have one name the first by its key is named so, and
// others by their hosts.
func synthetic(out []sdk.Resource, services *state.Table) ([]sdk.Resource, error) {
	taken := map[string]bool{}
	for _, r := range out {
		taken[r.Name] = true
	}
	for _, key := range slices.Sorted(slices.Values(services.Keys())) {
		row, s := services.Get(key), &pb.Service{}
		if s.Unmarshal(row.Payload) != nil || s.OriginTable == kinds.ServiceEntry {
			continue // one that can't be read is nobody's
		}
		name := kinds.Key(s.Namespace, "synthetic-"+cmp.Or(s.Name, s.Host))
		if taken[name] {
			name = kinds.Key(s.Namespace, "synthetic-"+s.Host)
		}
		taken[name] = true
		spec := &anypb.Any{}
		if err := anypb.MarshalFrom(spec, entry(s), proto.MarshalOptions{Deterministic: true}); err != nil {
			return nil, err
		}
		one, err := object(name, &pb.Row{Created: row.Created, Labels: s.Labels}, spec)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b sdk.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// entry is a service as a ServiceEntry says it.
func entry(s *pb.Service) *networking.ServiceEntry {
	e := &networking.ServiceEntry{
		Hosts:           []string{s.Host},
		Addresses:       s.Addresses,
		ExportTo:        s.ExportTo,
		SubjectAltNames: s.SubjectAltNames,
		Resolution:      resolution(s.Resolution),
	}
	if s.External {
		e.Location = networking.ServiceEntry_MESH_EXTERNAL
	} else {
		e.Location = networking.ServiceEntry_MESH_INTERNAL
	}
	if len(s.Selector) > 0 {
		e.WorkloadSelector = &networking.WorkloadSelector{Labels: s.Selector}
	}
	for _, p := range s.Ports {
		e.Ports = append(e.Ports, &networking.ServicePort{Number: p.Number, Name: p.Name, Protocol: p.Protocol, TargetPort: p.Target})
	}
	return e
}

func resolution(r pb.ServiceResolution) networking.ServiceEntry_Resolution {
	switch r {
	case pb.ServiceResolutionDns:
		return networking.ServiceEntry_DNS
	case pb.ServiceResolutionDnsRoundRobin:
		return networking.ServiceEntry_DNS_ROUND_ROBIN
	case pb.ServiceResolutionNone, pb.ServiceResolutionDynamicDns:
		return networking.ServiceEntry_NONE
	}
	return networking.ServiceEntry_STATIC
}
