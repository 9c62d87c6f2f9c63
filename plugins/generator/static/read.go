package static

import (
	"errors"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	_ "github.com/coxswain-mesh/coxswain/plugins/internal/envoytypes" // what `@type` may name
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// resource is one resource of a file.
type resource struct {
	file         string
	line, column int
	typeURL      string
	name         string
	body         []byte
}

// Labels of rows.
const (
	typeLabel = "type"
	nameLabel = "name"
	fileLabel = "file"
)

// row is the resource's row: its labels say what it is, and the payload is its bytes.
func (r *resource) row() *sdk.Row {
	return &sdk.Row{
		Key:     r.file + " " + r.typeURL + " " + r.name,
		Source:  fmt.Sprintf("%s:%d:%d", r.file, r.line, r.column),
		Labels:  map[string]string{typeLabel: r.typeURL, nameLabel: r.name, fileLabel: r.file},
		Payload: r.body,
	}
}

// read takes a file's content apart. Each document holds one of
//   - a list of resources, each with its `@type`;
//   - such a list under `resources`, as Envoy's file subscriptions have it;
//   - one resource with its `@type`;
//   - `static_resources`, as in Envoy's bootstrap.
//
// The error names each mistake with its place; there are no resources then.
func read(file string, content []byte) ([]*resource, error) {
	r := reader{file: file, names: map[[2]string]*resource{}}
	documents := 0
	for _, chunk := range protoyaml.Split(content) {
		root, fault := chunk.Parse()
		if fault != nil {
			r.faults = append(r.faults, *fault)
			continue
		}
		if root != nil {
			documents++
			r.document(root)
		}
	}
	if documents == 0 && len(r.faults) == 0 {
		return nil, fmt.Errorf("%s: is empty; `[]` says that there are no resources", file)
	}
	return r.resources, r.err()
}

type reader struct {
	file      string
	resources []*resource
	names     map[[2]string]*resource
	faults    []protoyaml.Fault
}

func (r *reader) err() error {
	var errs []error
	for _, f := range r.faults {
		errs = append(errs, fmt.Errorf("%s:%w", r.file, f))
	}
	return errors.Join(errs...)
}

func (r *reader) fault(at *yaml.Node, field, format string, args ...any) {
	r.faults = append(r.faults, protoyaml.Fault{Line: at.Line, Column: at.Column, Field: field, Reason: fmt.Sprintf(format, args...)})
}

func (r *reader) document(root *yaml.Node) {
	switch root.Kind {
	case yaml.SequenceNode:
		r.list(root, "")
		return
	case yaml.MappingNode:
	default:
		r.fault(root, "", "expected a list of resources, or a mapping with `resources`, `static_resources` or `@type`")
		return
	}
	pairs, faults := protoyaml.Pairs(root)
	r.faults = append(r.faults, faults...)
	for _, p := range pairs {
		switch p.Key.Value {
		case "@type":
			r.resource(root, "")
			return
		case "resources":
			r.list(protoyaml.Resolve(p.Value), "resources")
		case "static_resources", "staticResources":
			r.static(p.Value, p.Key.Value)
		case "version_info", "versionInfo":
			// Versions are made from what resources hold.
		default:
			r.fault(p.Key, p.Key.Value, "unknown field%s",
				nearest.Suggest(p.Key.Value, []string{"resources", "static_resources", "version_info", "@type"}))
		}
	}
}

func (r *reader) list(n *yaml.Node, field string) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, field, "expected a list of resources")
		return
	}
	for i, element := range n.Content {
		r.resource(element, fmt.Sprintf("%s[%d]", field, i))
	}
}

func (r *reader) resource(n *yaml.Node, field string) {
	var any anypb.Any
	if faults := protoyaml.Decode(n, field, &any); len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return
	}
	m, err := any.UnmarshalNew()
	if err != nil {
		r.fault(n, field, "%v", err)
		return
	}
	r.add(n, field, m)
}

// static takes the resources of a bootstrap.
func (r *reader) static(n *yaml.Node, field string) {
	var s bootstrapv3.Bootstrap_StaticResources
	if faults := protoyaml.Decode(n, field, &s); len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return
	}
	for _, m := range s.Clusters {
		r.add(n, field, m)
	}
	for _, m := range s.Listeners {
		r.add(n, field, m)
	}
	for _, m := range s.Secrets {
		r.add(n, field, m)
	}
}

// add checks a message, and those wrapped in it, by Envoy's own rules and keeps it.
func (r *reader) add(n *yaml.Node, field string, m proto.Message) {
	name := nameOf(m)
	typeURL := "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
	if name == "" {
		r.fault(n, field, "%s has no name (`name`, `cluster_name`)", typeURL)
		return
	}
	if err := envoyrules.CheckAll(m); err != nil {
		r.fault(n, field, "%q: Envoy would refuse it: %v", name, err)
		return
	}
	if first := r.names[[2]string{typeURL, name}]; first != nil {
		r.fault(n, field, "%q is there already, at line %d", name, first.line)
		return
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		r.fault(n, field, "%v", err)
		return
	}
	found := &resource{file: r.file, line: n.Line, column: n.Column, typeURL: typeURL, name: name, body: body}
	r.names[[2]string{typeURL, name}] = found
	r.resources = append(r.resources, found)
}

// nameOf returns a resource's name in xDS.
func nameOf(m proto.Message) string {
	fields := m.ProtoReflect().Descriptor().Fields()
	for _, name := range []string{"name", "cluster_name"} {
		if f := fields.ByTextName(name); f != nil && f.Kind().String() == "string" && !f.IsList() {
			return m.ProtoReflect().Get(f).String()
		}
	}
	return ""
}
