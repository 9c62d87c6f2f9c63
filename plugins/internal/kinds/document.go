package kinds

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"go.yaml.in/yaml/v3"
)

// Document is one object of a file. It has a row, or faults, or belongs to another API.
type Document struct {
	// Line and Column are where the object begins.
	Line, Column int
	// Table, Namespace and Name as far as they could be read.
	Table, Namespace, Name string
	// Row is nil where there are faults.
	Row    *pb.Row
	Faults []Fault
	// Foreign is APIVERSION/KIND of an object of another API.
	Foreign string
}

// Key returns the key of the object's row; empty where the name could not be read.
func (d *Document) Key() string {
	if d.Name == "" {
		return ""
	}
	return Key(d.Namespace, d.Name)
}

// DefaultNamespace is the namespace of objects that name none.
const DefaultNamespace = "default"

// Read returns the objects of a file's content, in order. The file's name is shown in sources and faults.
func Read(file string, content []byte) []Document {
	var docs []Document
	for _, chunk := range protoyaml.Split(content) {
		docs = append(docs, ReadChunk(file, chunk)...)
	}
	return docs
}

// ReadChunk returns the objects of one document of a file: several if it is a List.
func ReadChunk(file string, chunk protoyaml.Chunk) []Document {
	root, fault := chunk.Parse()
	if fault != nil {
		return []Document{unparsed(file, chunk, *fault)}
	}
	if root == nil || protoyaml.IsNull(root) {
		return nil
	}
	return readObjects(file, root)
}

// readObjects reads an object, or each item of a List as kubectl prints it.
func readObjects(file string, n *yaml.Node) []Document {
	r := newReader(file, n)
	if r.kind != "List" || r.version != "v1" {
		return []Document{r.document()}
	}
	items := r.value("items")
	if items == nil || items.Kind != yaml.SequenceNode {
		return nil
	}
	var docs []Document
	for _, item := range items.Content {
		docs = append(docs, newReader(file, protoyaml.Resolve(item)).document())
	}
	return docs
}

// reader reads one object.
type reader struct {
	doc           Document
	file          string
	root          *yaml.Node
	pairs         []protoyaml.Pair
	version, kind string
	meta          metadata
}

func newReader(file string, root *yaml.Node) *reader {
	r := &reader{file: file, root: root, doc: Document{Line: root.Line, Column: root.Column}}
	if root.Kind != yaml.MappingNode {
		return r
	}
	var faults []protoyaml.Fault
	r.pairs, faults = protoyaml.Pairs(root)
	r.faults(faults...)
	r.version, r.kind = scalar(r.value("apiVersion")), scalar(r.value("kind"))
	return r
}

// value returns what stands under a key of the object, nil for nothing.
func (r *reader) value(key string) *yaml.Node {
	for _, p := range r.pairs {
		if p.Key.Value == key {
			return protoyaml.Resolve(p.Value)
		}
	}
	return nil
}

// scalar returns a string's text, empty for anything else.
func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return ""
	}
	return n.Value
}

func (r *reader) faults(list ...protoyaml.Fault) {
	for _, f := range list {
		r.doc.Faults = append(r.doc.Faults, NewFault(r.file, f))
	}
}

func (r *reader) fault(at *yaml.Node, field, format string, args ...any) {
	r.faults(protoyaml.Fault{Line: at.Line, Column: at.Column, Field: field, Reason: fmt.Sprintf(format, args...)})
}

// document reads the whole object.
func (r *reader) document() Document {
	kind, ok := r.readKind()
	if !ok {
		r.nameFaults()
		return r.doc
	}
	r.doc.Table = kind.Table
	r.readMetadata()
	r.doc.Namespace, r.doc.Name = r.meta.namespace, r.meta.name
	row := r.readRow(kind)
	r.checkKeys()
	if len(r.doc.Faults) == 0 {
		r.doc.Row = row
	}
	r.nameFaults()
	return r.doc
}

// nameFaults tells the faults which resource they belong to.
func (r *reader) nameFaults() {
	for i := range r.doc.Faults {
		f := &r.doc.Faults[i]
		f.Kind, f.Namespace, f.Name = r.kind, r.doc.Namespace, r.doc.Name
	}
}

// readKind finds the object's kind; there is none where it belongs to another API or where something is wrong.
func (r *reader) readKind() (Kind, bool) {
	switch {
	case r.root.Kind != yaml.MappingNode:
		r.fault(r.root, "", "expected an object with apiVersion, kind, metadata and spec")
	case r.version == "":
		r.fault(r.root, "apiVersion", "is missing; write such as %s/v1", networkingGroup)
	case r.kind == "":
		r.fault(r.root, "kind", "is missing; write such as VirtualService")
	default:
		return r.lookup()
	}
	return Kind{}, false
}

func (r *reader) lookup() (Kind, bool) {
	group, version, _ := strings.Cut(r.version, "/")
	kind, ok := Lookup(group + "/" + r.kind)
	switch {
	case ok && !kind.serves(version):
		r.fault(r.value("apiVersion"), "apiVersion", "%s has no version %q; it has %s", r.kind, version, strings.Join(kind.Versions, ", "))
		// The object is known all the same, so that its last good version can be kept.
		r.doc.Table = kind.Table
		r.readMetadata()
		r.doc.Namespace, r.doc.Name = r.meta.namespace, r.meta.name
		return Kind{}, false
	case ok:
		return kind, true
	case !isIstio(group):
		r.doc.Foreign = r.version + "/" + r.kind
		r.doc.Faults = nil
		return Kind{}, false
	}
	r.fault(r.value("kind"), "kind", "%s has no kind %q%s", group, r.kind, protoyaml.Suggest(r.kind, namesOf(group)))
	return Kind{}, false
}

// isIstio reports whether all kinds of a group should be known.
func isIstio(group string) bool { return len(namesOf(group)) > 0 }

func namesOf(group string) []string {
	var names []string
	for _, k := range all {
		if k.Group() == group {
			names = append(names, k.Name())
		}
	}
	return names
}

// readRow decodes the spec, whatever else is wrong, so that all faults are told at once.
func (r *reader) readRow(kind Kind) *pb.Row {
	spec := kind.New()
	if n := r.value("spec"); n != nil {
		r.faults(protoyaml.Decode(n, "spec", spec)...)
	}
	payload, err := Encode(spec)
	if err != nil {
		r.fault(r.root, "spec", "%v", err)
	}
	row := &pb.Row{
		Key:         r.doc.Key(),
		Created:     r.meta.created,
		Source:      Source(r.file, r.doc.Line, r.doc.Column),
		Labels:      r.meta.labels,
		Annotations: r.meta.annotations,
		Payload:     payload,
	}
	if kind.Table == ServiceEntry {
		r.readAllocated(row)
	}
	return row
}

// checkKeys finds keys that no object has.
func (r *reader) checkKeys() {
	known := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	for _, p := range r.pairs {
		if !contains(known, p.Key.Value) {
			r.fault(p.Key, p.Key.Value, "unknown field%s", protoyaml.Suggest(p.Key.Value, known))
		}
	}
}
