// Package workloadentry says what a WorkloadEntry means, to whoever makes endpoints of them:
// registry/serviceentry of those beside the mesh's configuration, registry/kubernetes of those in
// other clusters.
package workloadentry

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Entry is a WorkloadEntry that counts: it is healthy, or nobody checks that.
type Entry struct {
	Namespace, Name string
	Spec            *networking.WorkloadEntry
	// Labels are those of the resource and of its spec; the resource's win.
	Labels map[string]string
	// Known is the name that telemetry knows the workload by.
	Known string
}

// Read returns the entry that a row of table networking.istio.io/WorkloadEntry holds; nil: it is
// known not to be healthy. It fails where the payload is none, or its address can't be one.
func Read(row *pb.Row) (*Entry, error) {
	spec, err := kinds.Decode[*networking.WorkloadEntry](row)
	if err != nil {
		return nil, err
	}
	labels := merged(spec.Labels, row.Labels)
	if err := CheckAddress(spec); err != nil {
		return nil, err
	}
	if !healthy(row) {
		return nil, nil
	}
	out := &Entry{Spec: spec, Labels: labels}
	out.Namespace, out.Name = kinds.SplitKey(row.Key)
	out.Known = knownAs(row, out.Name)
	return out, nil
}

// remote ends the keys of entries of other clusters among workloads: pods there may have their
// names.
const remote = "@WorkloadEntry"

// RemoteKey is the key of an entry of another cluster in table workloads.
func RemoteKey(namespace, name, cluster string) string {
	return kinds.Key(namespace, name) + "@" + cluster + remote
}

// IsRemote reports whether a key of table workloads is RemoteKey's.
func IsRemote(key string) bool { return strings.HasSuffix(key, remote) }

// Annotations and labels of WorkloadEntries that agents write which register their machines.
const (
	healthChecks = "proxy.istio.io/health-checks-enabled"
	groupName    = "istio.io/autoRegistrationGroup"
	workloadName = "service.istio.io/workload-name"
)

// healthy reports whether a workload can serve: one whose health is checked can once somebody found
// it so.
func healthy(row *pb.Row) bool {
	checked, err := strconv.ParseBool(row.Annotations[healthChecks])
	return err != nil || !checked || kinds.Healthy(row)
}

// knownAs is the name that telemetry knows a workload by: its group's, the one that its label says,
// or its own.
func knownAs(row *pb.Row, name string) string {
	if group, ok := row.Annotations[groupName]; ok {
		return group
	}
	if label, ok := row.Labels[workloadName]; ok {
		return label
	}
	return name
}

// merged has the keys of a and b; those of b win.
func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(b)
	for k, v := range a {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out
}

// CheckAddress checks the address of a WorkloadEntry, or of an endpoint in a ServiceEntry.
// Source: Istio API, WorkloadEntry.address.
func CheckAddress(e *networking.WorkloadEntry) error {
	path, unix := hosts.Path(e.Address)
	switch {
	case e.Address == "" && e.Network == "":
		return errors.New("address: needed where no network is given")
	case unix && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@"):
		return fmt.Errorf("address: %q needs an absolute path", e.Address)
	case !unix && e.Address != "" && !hosts.IsIP(e.Address) && !hosts.ValidName(e.Address, false):
		return fmt.Errorf("address: %q is neither an IP address nor a DNS name", e.Address)
	}
	return nil
}

// Address is the address as rows have it.
func Address(e *networking.WorkloadEntry) string {
	if path, ok := hosts.Path(e.Address); ok {
		return hosts.Unix + path
	}
	return e.Address
}

// Port is where a workload serves a service's port: its own port of that name, the service's target
// port, or the service's port. Unix sockets have none.
// Source: Istio API, WorkloadEntry.ports.
func Port(e *networking.WorkloadEntry, p *pb.Port) uint32 {
	if _, ok := hosts.Path(e.Address); ok {
		return 0
	}
	if own := e.Ports[p.Name]; own > 0 {
		return own
	}
	if p.Target > 0 {
		return p.Target
	}
	return p.Number
}

// ClusterPort is where a workload serves a port of a cluster's service: at the number that the
// service says, unless the entry has a port of the service's name for it. A port that the service
// knows by the workload's name alone is one that the entry must have; ok: it does.
// Source: Kubernetes, Service, targetPort; Istio API, WorkloadEntry.ports.
func ClusterPort(e *networking.WorkloadEntry, p *pb.Port) (port uint32, ok bool) {
	if p.TargetName != "" {
		port, ok = e.Ports[p.TargetName]
		return port, ok && port > 0
	}
	return Port(e, p), true
}

// Selectable reports whether services of a cluster can select the workload: neither names nor Unix
// sockets are addresses of their endpoints.
func Selectable(e *networking.WorkloadEntry) bool {
	_, unix := hosts.Path(e.Address)
	return !unix && (e.Address == "" || hosts.IsIP(e.Address))
}

// SelectsEntries reports whether a service of another registry selects WorkloadEntries: those of a
// cluster do that have an address of their own.
func SelectsEntries(s *pb.Service) bool {
	return s.Registry == "Kubernetes" && len(s.Selector) > 0 && !s.Headless && !s.External && s.Resolution == pb.ServiceResolutionStatic
}
