package mesh

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
)

// Kinds of the two settings.
const (
	MeshConfig   = "MeshConfig"
	MeshNetworks = "MeshNetworks"
)

// Read reads a file of a kind and checks it. The message is not to be used where a fault is an
// error.
func Read(kind, file string, content []byte, check func(finding.Resource) []finding.Finding) (proto.Message, []kinds.Fault) {
	return readOver(defaults(kind), kind, file, content, check)
}

// readOver applies a text of a kind to a message, which stays as it is, and checks what becomes of
// it. The result is not to be used where a fault is an error.
func readOver(over proto.Message, kind, file string, content []byte, check func(finding.Resource) []finding.Finding) (proto.Message, []kinds.Fault) {
	root, wrong := single(content)
	if len(wrong) > 0 || root == nil {
		return over, faults(kind, file, wrong)
	}
	m, wrong := apply(root, over)
	list := faults(kind, file, wrong)
	if kinds.Refuses(list) {
		return m, list
	}
	before := check(finding.Resource{Kind: kind, Spec: over, Node: root})
	for _, f := range check(finding.Resource{Kind: kind, Spec: m, Node: root}) {
		if !slices.Contains(before, f) {
			list = append(list, found(kind, file, root, f))
		}
	}
	kinds.SortFaults(list)
	return m, list
}

// defaults are what a kind's texts are applied to.
func defaults(kind string) proto.Message {
	if kind == MeshNetworks {
		return &api.MeshNetworks{}
	}
	return Defaults()
}

// apply returns what a message becomes by a document.
func apply(root *yaml.Node, over proto.Message) (proto.Message, []protoyaml.Fault) {
	if m, ok := over.(*api.MeshConfig); ok {
		return applyMesh(root, m)
	}
	m := &api.MeshNetworks{}
	return m, protoyaml.Decode(root, "", m)
}

func faults(kind, file string, wrong []protoyaml.Fault) []kinds.Fault {
	var list []kinds.Fault
	for _, f := range wrong {
		fault := kinds.NewFault(file, f)
		fault.Kind = kind
		list = append(list, fault)
	}
	return list
}

func found(kind, file string, root *yaml.Node, f finding.Finding) kinds.Fault {
	at := protoyaml.Locate(root, f.Field)
	return kinds.Fault{
		File: file, Line: at.Line, Column: at.Column, Kind: kind,
		Code: f.Code, Severity: f.Severity, Field: f.Field, Message: f.Message, Hint: f.Hint,
	}
}
