package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
)

// Reader gathers an Input from files.
type Reader struct {
	// Check is asked about each resource that was read without mistakes.
	Check func(finding.Resource) []finding.Finding
	// Input is what was read; Faults are what is wrong with it by itself.
	Input  Input
	Faults []kinds.Fault

	// file is the one that is read.
	file string
}

// Add reads a file: Istio's resources, and what Kubernetes' objects say of services, workloads and
// secrets.
func (r *Reader) Add(file string, content []byte) {
	r.file = file
	reader := kinds.Reader{Gateways: true, Check: func(found finding.Resource) []finding.Finding { return r.add(file, found) }}
	for _, chunk := range protoyaml.Split(content) {
		docs := reader.ReadChunk(file, chunk)
		foreign := false
		for _, d := range docs {
			r.Faults = append(r.Faults, d.Faults...)
			foreign = foreign || d.Foreign != ""
		}
		if foreign {
			r.kubernetes(chunk)
		}
	}
}

// add takes a resource, and checks it. One that is refused is analysed all the same: others refer
// to it.
func (r *Reader) add(file string, found finding.Resource) []finding.Finding {
	at := Resource{Resource: found, File: file}
	if found.Node != nil {
		at.Line, at.Column = found.Node.Line, found.Node.Column
	}
	at.readIngress()
	r.Input.Resources = append(r.Input.Resources, at)
	if r.Check == nil {
		return nil
	}
	return r.Check(found)
}

// AddRow takes a row of a config table, or of the mesh's settings.
func (r *Reader) AddRow(table string, row *pb.Row) error {
	if table == state.Mesh {
		r.Input.Mesh = &mesh.MeshConfig{}
		return proto.Unmarshal(row.Payload, r.Input.Mesh)
	}
	if other, ok := kinds.Other(table); ok && other.Group() == ingress.Group {
		r.addIngress(other, row)
		return nil
	}
	kind, ok := kinds.Lookup(table)
	if !ok {
		return nil
	}
	spec := kind.New()
	if err := proto.Unmarshal(row.Payload, spec); err != nil {
		return fmt.Errorf("%s %s: %w", table, row.Key, err)
	}
	namespace, name := kinds.SplitKey(row.Key)
	file, line, column := place(row.Source)
	r.Input.Resources = append(r.Input.Resources, Resource{
		Resource: finding.Resource{
			Group: kind.Group(), Version: kind.Versions[0], Kind: kind.Name(), Namespace: namespace, Name: name,
			Labels: row.Labels, Annotations: row.Annotations, Spec: spec,
		},
		File: file, Line: line, Column: column, derived: isDerived(row.Key),
	})
	return nil
}

// addIngress takes a row of Ingress or of IngressClass.
func (r *Reader) addIngress(kind objects.Kind, row *pb.Row) {
	namespace, name := kinds.SplitKey(row.Key)
	if kind.Cluster {
		namespace, name = "", row.Key
	}
	at := Resource{Resource: finding.Resource{
		Group: kind.Group(), Version: kind.Versions[0], Kind: kind.Name(), Namespace: namespace, Name: name, Labels: row.Labels, Annotations: row.Annotations,
	}}
	at.File, at.Line, at.Column = place(row.Source)
	at.setIngress(kind.Name(), row.Payload)
	r.Input.Resources = append(r.Input.Resources, at)
}

// Fields returns what a row of a config table, or of the mesh's settings, has, in JSON (the
// protobuf mapping); nil: its form is not known here.
func Fields(table string, payload []byte) ([]byte, error) {
	var m proto.Message = &mesh.MeshConfig{}
	if table != state.Mesh {
		kind, ok := kinds.Lookup(table)
		if !ok {
			return nil, nil
		}
		m = kind.New()
	}
	if err := proto.Unmarshal(payload, m); err != nil {
		return nil, err
	}
	return protojson.Marshal(m)
}

// place reads FILE:LINE:COLUMN; what has another form is a file.
func place(source string) (file string, line, column int) {
	rest, last, _ := cutLast(source)
	name, middle, ok := cutLast(rest)
	line, errLine := strconv.Atoi(middle)
	column, errColumn := strconv.Atoi(last)
	if !ok || errLine != nil || errColumn != nil {
		return source, 1, 1
	}
	return name, line, column
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// SetMesh reads the mesh's settings.
func (r *Reader) SetMesh(file string, content []byte) {
	settings := &mesh.MeshConfig{}
	node, fault := protoyaml.Chunk{Text: content}.Parse()
	var faults []protoyaml.Fault
	switch {
	case fault != nil:
		faults = []protoyaml.Fault{*fault}
	case node != nil:
		faults = protoyaml.Decode(node, "", settings)
	}
	for _, f := range faults {
		r.Faults = append(r.Faults, kinds.NewFault(file, f))
	}
	r.Input.Mesh = settings
}

// object is as much of an object of Kubernetes as is needed.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec struct {
		Selector yaml.Node
		Ports    []struct{ Port uint32 }
		Template struct {
			Metadata struct{ Labels map[string]string }
		}
	}
	Items []yaml.Node
}

// templates are kinds whose template says what labels their pods have.
var templates = []string{"DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"}

func (r *Reader) kubernetes(chunk protoyaml.Chunk) {
	node, fault := chunk.Parse()
	if fault == nil && node != nil {
		r.object(node)
	}
}

func (r *Reader) object(node *yaml.Node) {
	var o object
	// What has another form is no object of these kinds.
	if node.Decode(&o) != nil {
		return
	}
	namespace := o.Metadata.Namespace
	if namespace == "" {
		namespace = kinds.DefaultNamespace
	}
	r.addObject(&o, namespace, node)
	in := &r.Input
	switch {
	case o.Kind == "List":
		for i := range o.Items {
			r.object(&o.Items[i])
		}
	case o.Kind == "Service" && o.APIVersion == "v1":
		s := Service{Host: o.Metadata.Name + "." + namespace + ".svc." + domain, Namespace: namespace}
		for _, p := range o.Spec.Ports {
			s.Ports = append(s.Ports, p.Port)
		}
		_ = o.Spec.Selector.Decode(&s.Selector)
		in.Services = append(in.Services, s)
	case o.Kind == "Pod":
		in.Workloads = append(in.Workloads, Workload{namespace, o.Metadata.Labels, o.Metadata.Name})
	case slices.Contains(templates, o.Kind):
		in.Workloads = append(in.Workloads, Workload{namespace, o.Spec.Template.Metadata.Labels, strings.ToLower(o.Kind) + "/" + o.Metadata.Name})
	case o.Kind == secrets.Secret && o.APIVersion == "v1":
		in.Secrets = in.Secrets.with(namespace+"/"+o.Metadata.Name, credentialOf(node))
	case o.Kind == secrets.ConfigMap && o.APIVersion == "v1":
		in.ConfigMaps = in.ConfigMaps.with(namespace+"/"+o.Metadata.Name, credentialOf(node))
	}
}

// All analyses what was read, and returns what is wrong with it and within it, in order of places.
func (r *Reader) All() []kinds.Fault {
	all := slices.Concat(r.Faults, places(Analyze(r.Input)))
	kinds.SortFaults(all)
	return all
}

// places turns results into faults with places.
func places(list []Result) []kinds.Fault {
	var faults []kinds.Fault
	for _, r := range list {
		line, column := r.Resource.Line, r.Resource.Column
		if r.Resource.Node != nil {
			at := protoyaml.Locate(r.Resource.Node, r.Field)
			line, column = at.Line, at.Column
		}
		faults = append(faults, kinds.Fault{
			File: r.Resource.File, Line: line, Column: column,
			Kind: r.Resource.Kind, Namespace: r.Resource.Namespace, Name: r.Resource.Name,
			Code: r.Code, Severity: r.Severity, Field: r.Field, Message: r.Message, Hint: r.Hint,
		})
	}
	return faults
}
