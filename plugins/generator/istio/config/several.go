package config

import (
	"fmt"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Merged returns a service's row with the addresses and names that the service has in other clusters, by rows of table clusterservices in order of their keys. A row that can't be read
// is an error; a service without such rows stays as it is.
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
		for _, name := range there.SubjectAltNames {
			if !slices.Contains(all.SubjectAltNames, name) {
				all.SubjectAltNames = append(all.SubjectAltNames, name)
			}
		}
	}
	merged := *row
	merged.Payload = all.AppendTo(nil)
	return &merged, nil
}
