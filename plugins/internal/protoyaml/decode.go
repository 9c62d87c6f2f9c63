package protoyaml

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// Bounds for what people, or what they copied from, may write.
const (
	maxDepth   = 100
	maxAliased = 100_000
	maxFaults  = 50
)

// Decode sets the fields that a document names in a message, and returns what is wrong, in the
// order of the text. Fields that the document doesn't name keep their values; those it names are
// replaced, not merged. root is the path of the message within the document. A message with faults
// holds what could be read.
func Decode(node *yaml.Node, root string, into proto.Message) []Fault {
	d := decoder{path: path{root: root}}
	d.message(node, into.ProtoReflect())
	slices.SortStableFunc(d.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return d.faults
}

type decoder struct {
	path   path
	faults []Fault
	// inAlias is how many aliases we are inside of, and aliased how many nodes were visited so.
	inAlias, aliased int
	overgrown        bool
}

// fault notes a mistake at a node.
func (d *decoder) fault(at *yaml.Node, code, format string, args ...any) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, Fault{
			Line: at.Line, Column: at.Column, Code: code, Field: d.path.String(), Reason: fmt.Sprintf(format, args...),
		})
	}
}

// enter resolves a node, and reports whether it may be read: neither too deep nor multiplied by
// aliases. Each enter that succeeds needs its leave.
func (d *decoder) enter(n *yaml.Node) (*yaml.Node, bool) {
	if len(d.path.steps) > maxDepth {
		d.fault(n, CodeTooLarge, "nested deeper than %d levels", maxDepth)
		return n, false
	}
	if n.Kind == yaml.AliasNode {
		d.inAlias++
	}
	if d.inAlias > 0 {
		d.aliased++
	}
	if d.aliased > maxAliased {
		if !d.overgrown {
			d.fault(n, CodeTooLarge, "aliases grow to more than %d nodes", maxAliased)
		}
		d.overgrown = true
		d.leave(n)
		return n, false
	}
	return Resolve(n), true
}

func (d *decoder) leave(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		d.inAlias--
	}
}

// message reads a mapping, or whatever form the JSON mapping gives a well-known type.
func (d *decoder) message(n *yaml.Node, m protoreflect.Message) {
	target, ok := d.enter(n)
	if !ok {
		return
	}
	defer d.leave(n)
	if read := wellKnown(m.Descriptor().FullName()); read != nil {
		read(d, target, m)
		return
	}
	if IsNull(target) {
		return
	}
	d.fields(target, m, "")
}

// fields reads a mapping's entries into a message; the key skip is somebody else's.
func (d *decoder) fields(n *yaml.Node, m protoreflect.Message, skip string) {
	given := make(map[protoreflect.FieldNumber]bool, len(n.Content)/2)
	for pair := range d.pairs(n) {
		if skip != "" && pair.Key.Value == skip {
			continue
		}
		fd := d.find(pair.Key, m.Descriptor())
		if fd == nil || skipsNull(pair.Value, fd) {
			continue
		}
		d.path.push(step{name: pair.Key.Value})
		if d.free(pair.Key, fd, m, given) {
			d.field(pair.Value, fd, m)
		}
		d.path.pop()
	}
}

// free reports whether a field may be set: neither it, in its other spelling, nor another of its
// oneof was given.
func (d *decoder) free(key *yaml.Node, fd protoreflect.FieldDescriptor, m protoreflect.Message, given map[protoreflect.FieldNumber]bool) bool {
	if given[fd.Number()] {
		d.fault(key, CodeTwice, "given twice, as %s and as %s", fd.JSONName(), fd.Name())
		return false
	}
	given[fd.Number()] = true
	group := fd.ContainingOneof()
	if group == nil {
		return true
	}
	for i := range group.Fields().Len() {
		if other := group.Fields().Get(i); other != fd && given[other.Number()] {
			d.fault(key, CodeOneof, "%s and %s exclude each other; keep one", other.JSONName(), fd.JSONName())
			return false
		}
	}
	return true
}

// pairs yields a mapping's entries, after it noted what is wrong with its keys. What merge keys
// brought counts as aliased.
func (d *decoder) pairs(n *yaml.Node) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		if n.Kind != yaml.MappingNode {
			d.fault(n, CodeValue, "expected a mapping, got %s", describe(n))
			return
		}
		m := merge(n)
		d.aliased += m.merged
		for _, f := range m.faults {
			d.fault(&yaml.Node{Line: f.Line, Column: f.Column}, f.Code, "%s", f.Reason)
		}
		for _, pair := range m.pairs {
			if !d.yield(pair, yield) {
				return
			}
		}
	}
}

func (d *decoder) yield(pair Pair, yield func(Pair) bool) bool {
	if pair.merged {
		d.inAlias++
		defer func() { d.inAlias-- }()
	}
	return yield(pair)
}

// Field returns a message's field by its JSON or its proto name, nil for none.
func Field(of protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := of.Fields().ByJSONName(name); fd != nil {
		return fd
	}
	return of.Fields().ByName(protoreflect.Name(name))
}

// find returns the field of a key, after it noted that there is none.
func (d *decoder) find(key *yaml.Node, of protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if fd := Field(of, key.Value); fd != nil {
		return fd
	}
	d.path.push(step{name: clip(key.Value)})
	d.note(Unknown(key, d.path.String(), fieldNames(of.Fields())))
	d.path.pop()
	return nil
}

// note adds a fault.
func (d *decoder) note(f Fault) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, f)
	}
}

// Unknown returns the fault of a key that is none of the known ones.
func Unknown(key *yaml.Node, field string, known []string) Fault {
	return Fault{
		Line: key.Line, Column: key.Column, Code: CodeUnknown, Field: field,
		Foreign: nearest.Name(key.Value, known) == "", Reason: "unknown field" + nearest.Suggest(key.Value, known),
	}
}

func fieldNames(fields protoreflect.FieldDescriptors) []string {
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).JSONName()
	}
	return names
}

// skipsNull reports whether a value is a null that leaves the field unset.
func skipsNull(value *yaml.Node, fd protoreflect.FieldDescriptor) bool {
	if !IsNull(Resolve(value)) || fd.IsList() || fd.IsMap() {
		return IsNull(Resolve(value))
	}
	if fd.Message() != nil {
		return fd.Message().FullName() != "google.protobuf.Value"
	}
	return fd.Enum() == nil || fd.Enum().FullName() != "google.protobuf.NullValue"
}

// field reads a value into a field, replacing what it had.
func (d *decoder) field(n *yaml.Node, fd protoreflect.FieldDescriptor, m protoreflect.Message) {
	value := m.NewField(fd)
	switch {
	case fd.IsList():
		d.list(n, fd, value.List())
	case fd.IsMap():
		d.mapField(n, fd, value.Map())
	default:
		v, ok := d.single(n, fd, value)
		if !ok {
			return
		}
		value = v
	}
	m.Set(fd, value)
}

// single reads one value. For messages it fills the empty one that it is given.
func (d *decoder) single(n *yaml.Node, fd protoreflect.FieldDescriptor, empty protoreflect.Value) (protoreflect.Value, bool) {
	if fd.Message() != nil {
		d.message(n, empty.Message())
		return empty, true
	}
	target, ok := d.enter(n)
	if !ok {
		return empty, false
	}
	defer d.leave(n)
	return d.scalar(target, fd)
}

func (d *decoder) list(n *yaml.Node, fd protoreflect.FieldDescriptor, into protoreflect.List) {
	target, ok := d.enter(n)
	if !ok {
		return
	}
	defer d.leave(n)
	if target.Kind != yaml.SequenceNode {
		d.fault(target, CodeValue, "expected a list, got %s", describe(target))
		return
	}
	for i, each := range target.Content {
		d.path.push(step{index: i, kind: indexStep})
		if v, ok := d.element(each, fd, into.NewElement); ok {
			into.Append(v)
		}
		d.path.pop()
	}
}

func (d *decoder) mapField(n *yaml.Node, fd protoreflect.FieldDescriptor, into protoreflect.Map) {
	target, ok := d.enter(n)
	if !ok {
		return
	}
	defer d.leave(n)
	for pair := range d.pairs(target) {
		d.path.push(step{name: clip(pair.Key.Value), kind: keyStep})
		if skipsNull(pair.Value, fd.MapValue()) { // an API server leaves the entry out before it looks at an object
			d.note(Fault{
				Line: pair.Value.Line, Column: pair.Value.Column, Code: CodeNull, Field: d.path.String(), Foreign: true, Reason: "null is no value",
			})
		} else if key, ok := d.mapKey(pair.Key, fd.MapKey()); ok {
			if v, ok := d.element(pair.Value, fd.MapValue(), into.NewValue); ok {
				into.Set(key, v)
			}
		}
		d.path.pop()
	}
}

// element reads one value of a list or map, which is never null.
func (d *decoder) element(n *yaml.Node, fd protoreflect.FieldDescriptor, empty func() protoreflect.Value) (protoreflect.Value, bool) {
	if skipsNull(n, fd) {
		d.fault(n, CodeNull, "null is no value here; leave the entry out")
		return protoreflect.Value{}, false
	}
	return d.single(n, fd, empty())
}
