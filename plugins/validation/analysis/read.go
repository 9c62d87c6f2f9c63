package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
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
	reader := kinds.Reader{Gateways: true, Grants: true, Check: func(found finding.Resource) []finding.Finding { return r.add(file, found) }}
	for _, chunk := range protoyaml.Split(content) {
		docs := reader.ReadChunk(file, chunk)
		foreign := false
		for _, d := range docs {
			r.Faults = append(r.Faults, d.Faults...)
			foreign = foreign || d.Foreign != ""
			if d.Row != nil {
				r.noteClass(d.Table, d.Row)
			}
			if d.Row != nil && derivedOf(d.Table) {
				r.Input.rows = append(r.Input.rows, objectRow{d.Table, d.Row})
			}
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
	if at.Name == "" && found.Node != nil { // one that no API server takes, and that is told
		if m := protoyaml.Child(found.Node, "metadata"); m != nil {
			if n := protoyaml.Child(m, "name"); n != nil {
				at.Name = n.Value
			}
		}
	}
	at.readIngress()
	at.readConditions()
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
	if other, ok := kinds.Other(table); ok {
		switch {
		case other.Group() == ingress.Group:
			r.addIngress(other, row)
		case table == gatewayapi.HTTPRoute || table == gatewayapi.GRPCRoute:
			r.addRoute(other, row)
		}
		r.noteClass(table, row)
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
		File: file, Line: line, Column: column, derived: isDerived(row.Key), allocated: len(kinds.Allocated(row)) > 0,
	})
	return nil
}

// noteClass notes a Gateway of the Gateway API whose class nobody serves.
func (r *Reader) noteClass(table string, row *pb.Row) {
	if table != gatewayapi.Gateway {
		return
	}
	g, err := gatewayapi.Decode[gatewayv1.GatewaySpec](row)
	if err != nil {
		return // its own fault
	}
	if why := kinds.UnservedClass(string(g.Spec.GatewayClassName)); why != "" {
		if r.Input.unserved == nil {
			r.Input.unserved = map[string]string{}
		}
		r.Input.unserved[row.Key] = why
	}
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
	r.read(file, content, settings)
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
		NodeName string `yaml:"nodeName"`
		Selector yaml.Node
		Ports    []struct {
			Port     uint32
			Protocol string
		}
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
		s := Service{Host: o.Metadata.Name + "." + namespace + ".svc." + domain, Namespace: namespace,
			Seen: exported(o.Metadata.Annotations[exportTo], namespace)}
		for _, p := range o.Spec.Ports {
			s.addPort(p.Port, p.Protocol)
		}
		_ = o.Spec.Selector.Decode(&s.Selector)
		in.Services = append(in.Services, s)
	case o.Kind == kindPod:
		in.Workloads = append(in.Workloads, Workload{Namespace: namespace, Labels: o.Metadata.Labels, Name: o.Metadata.Name, pod: true, node: o.Spec.NodeName})
	case slices.Contains(templates, o.Kind):
		name := strings.ToLower(o.Kind) + "/" + o.Metadata.Name
		in.Workloads = append(in.Workloads, Workload{Namespace: namespace, Labels: o.Spec.Template.Metadata.Labels, Name: name, template: true})
	case o.Kind == secrets.Secret && o.APIVersion == "v1":
		in.Secrets = in.Secrets.with(namespace+"/"+o.Metadata.Name, credentialOf(node))
	case o.Kind == secrets.ConfigMap && o.APIVersion == "v1":
		r.meshSettings(o.Metadata.Name, node)
		in.ConfigMaps = in.ConfigMaps.with(namespace+"/"+o.Metadata.Name, credentialOf(node))
	}
}

// meshSettings takes the mesh's settings and networks from the ConfigMap istio, or one of a
// revision. What is wrong with the settings is told by who serves them.
func (r *Reader) meshSettings(name string, node *yaml.Node) {
	if name != "istio" && !strings.HasPrefix(name, "istio-") {
		return
	}
	var of struct {
		Data struct {
			Mesh     string
			Networks string `yaml:"meshNetworks"`
		}
	}
	if node.Decode(&of) != nil {
		return
	}
	if of.Data.Networks != "" {
		r.SetNetworks(r.file, []byte(of.Data.Networks))
	}
	if of.Data.Mesh != "" && r.Input.Mesh == nil {
		settings := &mesh.MeshConfig{}
		if n, fault := (protoyaml.Chunk{Text: []byte(of.Data.Mesh)}).Parse(); fault == nil && n != nil {
			protoyaml.Decode(n, "", settings)
			r.Input.Mesh = settings
		}
	}
}

// exportTo is the annotation of a Service with the namespaces that see it, parted by commas.
const exportTo = "networking.istio.io/exportTo"

// exported returns the namespaces that see a Service with this annotation; nil: all.
func exported(text, namespace string) []string {
	if text == "" {
		return nil
	}
	var to []string
	for each := range strings.SplitSeq(text, ",") {
		to = append(to, strings.TrimSpace(each))
	}
	if seen := istio.Export(to, nil, namespace); seen != nil {
		return seen
	}
	return []string{} // nobody
}

// All analyses what was read, and returns what is wrong with it and within it, in order of places.
func (r *Reader) All() []kinds.Fault {
	all := slices.Concat(r.single(), places(Analyze(r.Input)))
	kinds.SortFaults(all)
	return all
}

// udp is the protocol of ports for datagrams.
const udp = "UDP"

func (s *Service) addPort(number uint32, protocol string) {
	s.Ports = append(s.Ports, number)
	if protocol == udp {
		s.Datagrams = append(s.Datagrams, number)
	}
}

// AddService takes a service of a registry.
func (r *Reader) AddService(of *pb.Service) {
	s := Service{Host: of.Host, Namespace: of.Namespace, Selector: of.Selector, Seen: of.ExportTo}
	if len(of.ExportTo) > 0 {
		s.Seen = istio.Export(of.ExportTo, nil, of.Namespace)
	}
	for _, port := range of.Ports {
		s.addPort(port.Number, port.Protocol)
	}
	r.Input.Services = append(r.Input.Services, s)
}

// Excuses reports whether what is wrong with a resource by itself is made good by others, or is
// suppressed by its annotation, or told of the object that the resource was made of.
func (r *Reader) Excuses(of *Resource, f finding.Finding) bool {
	return of.derived || f.Code == rules.NeedsAddress && (of.allocated || r.allocates()) || suppressed(Result{of, f})
}

// allocates reports whether proxies give addresses to all that have none, as the mesh's settings
// say.
func (r *Reader) allocates() bool {
	env := r.Input.Mesh.GetDefaultConfig().GetProxyMetadata()
	return env["ISTIO_META_DNS_CAPTURE"] == "true" && (env["ISTIO_META_DNS_AUTO_ALLOCATE"] == "true" || env["PILOT_ENABLE_IP_AUTOALLOCATE"] == "true")
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
