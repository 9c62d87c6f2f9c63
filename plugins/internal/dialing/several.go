package dialing

import (
	"fmt"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Merged returns a service's row with the addresses and names that the service has in other
// clusters, by rows of table clusterservices in order of their keys. A row that can't be read is an
// error; a service without such rows stays as it is.
func Merged(row *pb.Row, others []*pb.Row) (*pb.Row, error) {
	if row == nil || len(others) == 0 {
		return row, nil
	}
	all := &pb.Service{}
	if err := all.Unmarshal(row.Payload); err != nil {
		return nil, fmt.Errorf("service %s: %w", row.Key, err)
	}
	for _, r := range others {
		there := &pb.Service{}
		if err := there.Unmarshal(r.Payload); err != nil {
			return nil, fmt.Errorf("service %s: %w", r.Key, err)
		}
		if all.ClusterAddresses == nil {
			all.ClusterAddresses = map[string]string{}
		}
		maps.Copy(all.ClusterAddresses, there.ClusterAddresses)
		all.Aliases = append(all.Aliases, there.Aliases...)
		all.SubjectAltNames = with(all.SubjectAltNames, there.SubjectAltNames)
		all.ServiceAccounts = with(all.ServiceAccounts, there.ServiceAccounts)
	}
	slices.Sort(all.Aliases)
	all.Aliases = slices.Compact(all.Aliases)
	merged := *row
	merged.Payload = all.AppendTo(nil)
	return &merged, nil
}

// with returns a list with what it lacks of another.
func with(list, more []string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
