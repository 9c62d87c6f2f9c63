package analysis

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const unknownRegistry = "IST0126"

// networks finds registries that the mesh's networks name and nobody knows. Those that are known
// are the cluster, what files bring, and the clusters that Secrets are about.
func networks(w *world) {
	known := []string{"Kubernetes", "External", "Mock"}
	for _, r := range w.objectsOf(kindSecret) {
		known = slices.AppendSeq(known, maps.Keys(r.data))
	}
	for _, m := range of[*mesh.MeshNetworks](w) {
		for _, name := range slices.Sorted(maps.Keys(m.spec.Networks)) {
			for i, e := range m.spec.Networks[name].GetEndpoints() {
				if registry := e.GetFromRegistry(); registry != "" && !slices.Contains(known, registry) {
					w.report(m.Resource, finding.Errorf(unknownRegistry, fmt.Sprintf("networks.%s.endpoints[%d].fromRegistry", name, i),
						"Unknown service registry %s in network %s", registry, name).
						WithHint("a registry is a cluster by its name, with upper and lower case"))
				}
			}
		}
	}
}

// SetNetworks reads the mesh's networks (MeshNetworks).
func (r *Reader) SetNetworks(file string, content []byte) {
	settings := &mesh.MeshNetworks{}
	r.read(file, content, settings)
	r.Input.Resources = append(r.Input.Resources, Resource{
		Resource: finding.Resource{Kind: "MeshNetworks", Namespace: defaultRoot, Name: "meshnetworks", Spec: settings}, File: file, Line: 1, Column: 1,
	})
}

// read reads settings of the mesh.
func (r *Reader) read(file string, content []byte, into proto.Message) {
	node, fault := protoyaml.Chunk{Text: content}.Parse()
	var faults []protoyaml.Fault
	switch {
	case fault != nil:
		faults = []protoyaml.Fault{*fault}
	case node != nil:
		faults = protoyaml.Decode(node, "", into)
	}
	for _, f := range faults {
		r.Faults = append(r.Faults, kinds.NewFault(file, f))
	}
}
