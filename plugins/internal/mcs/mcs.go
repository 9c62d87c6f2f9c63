// Package mcs is what plugins say to each other of Kubernetes' Multi-Cluster Services: which
// services are exported and imported, by cluster.
//
// Source: KEP-1645, Multi-Cluster Services API.
package mcs

import (
	"encoding/json"
	"fmt"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Tables of ServiceExports and ServiceImports. Keys are CLUSTER/NAMESPACE/NAME, payloads are JSON.
const (
	Exports = "serviceexports"
	Imports = "serviceimports"
)

// Service is one that is exported from a cluster, or imported there.
type Service struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Host is its name in the mesh, such as web.shop.svc.cluster.local.
	Host string `json:"host"`
	// Addresses that the cluster has for it as a whole, sorted; of imports.
	Addresses []string `json:"addresses,omitempty"`
}

// ClusterSetHost is the service's name in all clusters together.
func (s *Service) ClusterSetHost() string {
	return s.Name + "." + s.Namespace + ".svc.clusterset.local"
}

// Key of a service's row.
func Key(cluster, namespace, name string) string { return cluster + "/" + namespace + "/" + name }

// Row returns the service's row.
func (s *Service) Row() *sdk.Row {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is nothing in it that can't be
	}
	return &sdk.Row{Key: Key(s.Cluster, s.Namespace, s.Name), Payload: text}
}

// Of reads a row.
func Of(r *sdk.Row) (*Service, error) {
	s := &Service{}
	if err := json.Unmarshal(r.Payload, s); err != nil {
		return nil, fmt.Errorf("row %s: %w", r.Key, err)
	}
	return s, nil
}
