package kinds

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"go.yaml.in/yaml/v3"
)

// Document is one object of a file. It has a row, or faults that are errors, or belongs to another
// API.
type Document struct {
	// Line and Column are where the object begins.
	Line, Column int
	// Table, Namespace and Name as far as they could be read.
	Table, Namespace, Name string
	// Row is nil where there are errors. Faults may be warnings alone.
	Row    *pb.Row
	Faults []Fault
	// Foreign is APIVERSION/KIND of an object of another API.
	Foreign string
}

// Key returns the key of the object's row, the name alone for one in no namespace; empty where the
// name could not be read.
func (d *Document) Key() string {
	if d.Name == "" || d.Namespace == "" {
		return d.Name
	}
	return Key(d.Namespace, d.Name)
}

// DefaultNamespace is the namespace of objects that name none.
const DefaultNamespace = "default"

// Read returns the objects of a file's content, in order. The file's name is shown in sources and
// faults.
func Read(file string, content []byte) []Document { return Reader{}.Read(file, content) }

// Reader reads files.
type Reader struct {
	// Check is asked about each resource that was read without mistakes; nil: nothing more is
	// checked.
	Check func(finding.Resource) []finding.Finding
	// Defaulted returns the spec of a resource of Others with the defaults that the API server
	// sets, or nil; nil: it is served as it is written, for the API server has set them.
	Defaulted func(finding.Resource) (spec any)
	// Secrets: Kubernetes' Secrets and ConfigMaps are read, too, for the certificates and keys in
	// them.
	Secrets bool
	// Order says which objects go before others; nil: what they say of when they were created.
	Order *Order
	// Grants: the Gateway API's ReferenceGrants are read, too.
	Grants bool
	// Gateways: Others are read, too.
	Gateways bool
}

// Read returns the objects of a file's content, in order.
func (r Reader) Read(file string, content []byte) []Document {
	var docs []Document
	for _, chunk := range protoyaml.Split(content) {
		docs = append(docs, r.ReadChunk(file, chunk)...)
	}
	return docs
}

// ReadChunk returns the objects of one document of a file: several if it is a List.
func (r Reader) ReadChunk(file string, chunk protoyaml.Chunk) []Document {
	root, fault := chunk.Parse()
	if fault != nil {
		return []Document{r.unparsed(file, chunk, *fault)}
	}
	if root == nil || protoyaml.IsNull(root) {
		return nil
	}
	return r.objects(file, root)
}

// objects reads an object, or each item of a List as kubectl prints it.
func (r Reader) objects(file string, n *yaml.Node) []Document {
	o := r.object(file, n)
	if o.kind != "List" || o.version != "v1" {
		return []Document{o.document()}
	}
	items := o.value("items")
	if items == nil || items.Kind != yaml.SequenceNode {
		return nil
	}
	var docs []Document
	for _, item := range items.Content {
		docs = append(docs, r.object(file, protoyaml.Resolve(item)).document())
	}
	return docs
}

// object is one object that is being read.
type object struct {
	doc           Document
	reader        Reader
	file          string
	root          *yaml.Node
	pairs         []protoyaml.Pair
	version, kind string
	meta          metadata
}

func (r Reader) object(file string, root *yaml.Node) *object {
	o := &object{file: file, root: root, reader: r, doc: Document{Line: root.Line, Column: root.Column}}
	if root.Kind != yaml.MappingNode {
		return o
	}
	var faults []protoyaml.Fault
	o.pairs, faults = protoyaml.Pairs(root)
	o.faults(faults...)
	o.version, o.kind = scalar(o.value("apiVersion")), scalar(o.value("kind"))
	return o
}

// value returns what stands under a key of the object, nil for nothing.
func (o *object) value(key string) *yaml.Node {
	for _, p := range o.pairs {
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

func (o *object) faults(list ...protoyaml.Fault) {
	for _, f := range list {
		o.doc.Faults = append(o.doc.Faults, NewFault(o.file, f))
	}
}

func (o *object) fault(at *yaml.Node, code, field, format string, args ...any) {
	o.faults(protoyaml.Fault{Line: at.Line, Column: at.Column, Code: code, Field: field, Reason: fmt.Sprintf(format, args...)})
}

// document reads the whole object.
func (o *object) document() Document {
	if o.reader.Secrets && o.version == "v1" && isSecret(o.kind) {
		o.readSecret()
		o.nameFaults()
		return o.doc
	}
	if o.reader.Grants && isGrant(o.version, o.kind) {
		o.readGrant()
		o.nameFaults()
		return o.doc
	}
	if kind, ok := otherKind(o.version, o.kind); ok && o.reader.Gateways {
		o.readOther(kind)
		o.nameFaults()
		return o.doc
	}
	kind, ok := o.readKind()
	if !ok {
		o.nameFaults()
		return o.doc
	}
	o.doc.Table = kind.Table
	o.readMetadata()
	o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
	o.checkKeys()
	row := o.readRow(kind)
	if !Refuses(o.doc.Faults) {
		o.doc.Row = row
	}
	o.nameFaults()
	return o.doc
}

// nameFaults tells the faults which resource they belong to.
func (o *object) nameFaults() {
	for i := range o.doc.Faults {
		f := &o.doc.Faults[i]
		f.Kind, f.Namespace, f.Name = o.kind, o.doc.Namespace, o.doc.Name
	}
}

// readKind finds the object's kind; there is none where it belongs to another API or where
// something is wrong.
func (o *object) readKind() (Kind, bool) {
	switch {
	case o.root.Kind != yaml.MappingNode:
		o.fault(o.root, CodeObject, "", "expected an object with apiVersion, kind, metadata and spec")
	case o.isStranger():
		o.doc.Foreign, o.doc.Faults = "no Kubernetes object", nil
		o.fault(o.root, CodeObject, "", "is no Kubernetes object: it has no apiVersion and kind, no metadata and no spec")
		o.doc.Faults[0].Severity, o.doc.Faults[0].Hint = finding.Warning, "it is left out"
	case o.version == "":
		o.fault(o.root, CodeObject, "apiVersion", "is missing; write such as %s/v1", networkingGroup)
	case o.kind == "":
		o.fault(o.root, CodeObject, "kind", "is missing; write such as VirtualService")
	default:
		return o.lookup()
	}
	return Kind{}, false
}

// isStranger reports whether the object is none of Kubernetes' nor was meant to be, such as a
// chart's values: it has keys of its own, and none that an object has. What is left of a Kubernetes
// object that was cut is no stranger, so that its last good version stays.
func (o *object) isStranger() bool {
	own := false
	for _, p := range o.pairs {
		switch p.Key.Value {
		case "metadata", "spec", "items":
			return false
		case "apiVersion", "kind":
		default:
			own = true
		}
	}
	return own && (o.version == "" || o.kind == "")
}

func (o *object) lookup() (Kind, bool) {
	group, version, _ := strings.Cut(o.version, "/")
	kind, ok := Lookup(group + "/" + o.kind)
	switch {
	case ok && !kind.serves(version):
		o.fault(o.value("apiVersion"), CodeKind, "apiVersion", "%s has no version %q; it has %s", o.kind, version, strings.Join(kind.Versions, ", "))
		// The object is known all the same, so that its last good version can be kept.
		o.doc.Table = kind.Table
		o.readMetadata()
		o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
		return Kind{}, false
	case ok:
		return kind, true
	case !isIstio(group):
		o.doc.Foreign = o.version + "/" + o.kind
		o.doc.Faults = nil
		if version == "" { // v1
			group = ""
		}
		o.tellUnserved(group)
		return Kind{}, false
	}
	o.fault(o.value("kind"), CodeKind, "kind", "%s has no kind %q%s", group, o.kind, nearest.Suggest(o.kind, namesOf(group)))
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
func (o *object) readRow(kind Kind) *pb.Row {
	spec := kind.New()
	if n := o.value("spec"); n != nil {
		o.faults(protoyaml.Decode(n, "spec", spec)...)
	}
	payload, err := Encode(spec)
	if err != nil {
		o.fault(o.root, protoyaml.CodeValue, "spec", "%v", err)
	}
	row := &pb.Row{
		Key:         o.doc.Key(),
		Created:     o.meta.created,
		Source:      Source(o.file, o.doc.Line, o.doc.Column),
		Labels:      o.meta.labels,
		Annotations: o.meta.annotations,
		Payload:     payload,
	}
	if order := o.reader.Order; order != nil {
		row.Created, row.Undated = order.rank(o.doc.Namespace), true
	}
	o.readStatus(kind.Table, row)
	o.judge(spec)
	o.tellUnservedParts(kind.Table, spec)
	return row
}

// checkKeys finds keys that no object has.
func (o *object) checkKeys() {
	known := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	for _, p := range o.pairs {
		if !contains(known, p.Key.Value) {
			o.faults(protoyaml.Unknown(p.Key, p.Key.Value, known))
		}
	}
}
