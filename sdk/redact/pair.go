package redact

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// pairing is what a message says by a name and a value, such as a header or an entry of a map.
type pairing struct {
	// secret: the name is one of a secret.
	secret bool
	// number: numbers that the name has are secret, too.
	number bool
	// variables: the name is that of an environment.
	variables bool
	// whole: all fields but the name are its value.
	whole bool
	name  protoreflect.FieldNumber
}

// below is what a field of the message is, which is something by itself.
func (p pairing) below(d protoreflect.FieldDescriptor, f field, is what) what {
	if d.ContainingMessage().FullName() == "google.protobuf.Struct" {
		if key, _ := entry(f); pairValue(key) && (p.secret || is.listed) {
			is.secret, is.number = true, true
		}
		is.listed = false
		return is
	}
	switch {
	case d.Number() == p.name && p.name != 0:
		is.secret = false
	case p.whole || pairValue(string(d.Name())):
		is.secret, is.number, is.variables = is.secret || p.secret, is.number || p.number, is.variables || p.variables
	}
	return is
}

// pairOf finds out whether a message says what is secret by a name and a value.
func pairOf(md protoreflect.MessageDescriptor, all []field) (p pairing) {
	var name protoreflect.FieldDescriptor
	full := string(md.FullName())
	switch {
	case md.IsMapEntry():
		if !valued(md) {
			return p
		}
		name, p.whole = md.Fields().ByNumber(1), true
	case full == "google.protobuf.Struct":
		return structPair(all)
	case strings.HasSuffix(full, ".HeaderMatcher"), strings.HasSuffix(full, ".QueryParameterMatcher"):
		name, p.whole = md.Fields().ByName("name"), true
	case md.Fields().ByName("value") != nil:
		for _, n := range []protoreflect.Name{"key", "name", "header"} {
			if d := md.Fields().ByName(n); d != nil {
				name = d
				break
			}
		}
	}
	if name == nil || name.Kind() != protoreflect.StringKind {
		return p
	}
	p.name = name.Number()
	for _, f := range all {
		if f.number == p.name && f.kind == protowire.BytesType {
			key := string(f.value)
			if full == "google.protobuf.Struct.FieldsEntry" {
				p.secret, p.number, p.variables = Name(key), Name(key), variables(key)
			} else {
				p.secret = Header(key)
			}
		}
	}
	return p
}

// valued reports whether a map's values are texts, or say what a text is to be.
func valued(md protoreflect.MessageDescriptor) bool {
	v := md.Fields().ByNumber(2)
	if v.Message() == nil {
		return v.Kind() == protoreflect.StringKind || v.Kind() == protoreflect.BytesKind
	}
	name := v.Message().FullName()
	return name == "google.protobuf.Value" || strings.Contains(string(name.Name()), "Match")
}

// structPair is that of {"name": "authorization", "value": "…"}: its entry value is secret.
func structPair(all []field) (p pairing) {
	for _, f := range all {
		if key, text := entry(f); pairName(key) && Header(text) {
			p.secret = true
		}
	}
	return p
}

// entry reads an entry of a Struct whose value is a text.
func entry(f field) (key, text string) {
	in, _ := fields(f.value)
	for _, e := range in {
		switch {
		case e.kind != protowire.BytesType:
		case e.number == 1:
			key = string(e.value)
		case e.number == 2:
			value, _ := fields(e.value)
			for _, v := range value {
				if v.number == 3 && v.kind == protowire.BytesType {
					text = string(v.value)
				}
			}
		}
	}
	return key, text
}
