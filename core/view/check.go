package view

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// maxDepth is how deep messages may nest (as in protobuf's own decoders, which stop far deeper).
const maxDepth = 200

// Check reports whether a resource's bytes decode as its type: fields have the types of the .proto
// file, strings are UTF-8, and messages in an Any decode in turn. Types that this binary doesn't
// know are taken as they are. It allocates nothing.
func Check(typeURL string, value []byte) error {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil
	}
	return check(t.Descriptor(), value, 0)
}

// CheckChange is Check for a value that takes the place of one that was checked. Of the resource's
// own fields it looks only at those from the first to the last that differ: a change to one virtual
// host costs what that host does, and not the route configuration.
func CheckChange(typeURL string, value, before []byte) error {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil
	}
	first := sharedHead(value, before)
	value, before = value[first:], before[first:]
	return check(t.Descriptor(), value[:len(value)-sharedTail(value, before)], 0)
}

// sharedHead returns the bytes of the fields with which both begin.
func sharedHead(a, b []byte) int {
	at := 0
	for at < len(a) {
		_, _, n := protowire.ConsumeField(a[at:])
		if n < 0 || at+n > len(b) || !bytes.Equal(a[at:at+n], b[at:at+n]) {
			break
		}
		at += n
	}
	return at
}

// sharedTail returns the bytes of the fields with which both end; none where one of them can't be
// read.
func sharedTail(a, b []byte) int {
	starts, others := fieldStarts(a), fieldStarts(b)
	end, other := len(a), len(b)
	for i, j := len(starts)-1, len(others)-1; i >= 0 && j >= 0 && bytes.Equal(a[starts[i]:end], b[others[j]:other]); i, j = i-1, j-1 {
		end, other = starts[i], others[j]
	}
	return len(a) - end
}

// fieldStarts returns where the fields of a message begin; nil where it can't be read.
func fieldStarts(b []byte) (starts []int) {
	for at := 0; at < len(b); {
		_, _, n := protowire.ConsumeField(b[at:])
		if n < 0 {
			return nil
		}
		starts = append(starts, at)
		at += n
	}
	return starts
}

func check(d protoreflect.MessageDescriptor, b []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: messages nest deeper than %d", d.FullName(), maxDepth)
	}
	if d.FullName() == "google.protobuf.Any" {
		return checkAny(b, depth)
	}
	fields := d.Fields()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%s: %w", d.FullName(), protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return fmt.Errorf("%s: field %d: %w", d.FullName(), num, protowire.ParseError(size))
		}
		if f := fields.ByNumber(num); f != nil {
			if err := checkField(f, typ, b[n:n+size], depth); err != nil {
				return err
			}
		}
		b = b[n+size:]
	}
	return nil
}

func checkField(f protoreflect.FieldDescriptor, typ protowire.Type, value []byte, depth int) error {
	want := wireType(f.Kind())
	packed := f.IsList() && typ == protowire.BytesType && want != protowire.BytesType && want != protowire.StartGroupType
	if typ != want && !packed {
		return fmt.Errorf("%s has wire type %d, not %d", f.FullName(), typ, want)
	}
	if typ != protowire.BytesType || packed {
		return nil
	}
	inner, _ := protowire.ConsumeBytes(value)
	switch {
	case f.Kind() == protoreflect.StringKind && !utf8.Valid(inner):
		return fmt.Errorf("%s is not UTF-8", f.FullName())
	case f.Message() != nil:
		return check(f.Message(), inner, depth+1)
	}
	return nil
}

// checkAny looks into a google.protobuf.Any.
func checkAny(b []byte, depth int) error {
	var url string
	var value []byte
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		if typ == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(b[n:])
			switch num {
			case 1:
				url = string(inner)
			case 2:
				value = inner
			}
		}
		b = b[n+size:]
	}
	t, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return nil
	}
	return check(t.Descriptor(), value, depth+1)
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}
