package mesh

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// Kinds of the two files.
const (
	MeshConfig   = "MeshConfig"
	MeshNetworks = "MeshNetworks"
)

// Read reads a file of a kind and checks it. The message is not to be used where a fault is an error.
func Read(kind, file string, content []byte, check func(finding.Resource) []finding.Finding) (proto.Message, []kinds.Fault) {
	read := readMesh
	if kind == MeshNetworks {
		read = readNetworks
	}
	root, wrong := single(content)
	if len(wrong) > 0 {
		m, _ := read(nil)
		return m, faults(kind, file, wrong)
	}
	m, wrong := read(root)
	list := faults(kind, file, wrong)
	if root == nil || kinds.Refuses(list) {
		return m, list
	}
	for _, f := range check(finding.Resource{Kind: kind, Spec: m, Node: root}) {
		list = append(list, found(kind, file, root, f))
	}
	kinds.SortFaults(list)
	return m, list
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
