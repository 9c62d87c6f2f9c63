package protoyaml

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// scalar reads a number, string, boolean, enum or bytes.
func (d *decoder) scalar(n *yaml.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, CodeValue, "expected %s, got %s", wanted(fd), describe(n))
		return protoreflect.Value{}, false
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		return d.text(n)
	case protoreflect.BoolKind:
		return d.boolean(n)
	case protoreflect.EnumKind:
		return d.enum(n, fd.Enum())
	case protoreflect.BytesKind:
		return d.bytes(n)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return d.float(n, fd.Kind())
	default:
		return d.integer(n, fd.Kind())
	}
}

// wanted says what a field takes, for messages.
func wanted(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return "a string"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		return "one of " + strings.Join(enumNames(fd.Enum()), ", ")
	case protoreflect.BytesKind:
		return "a base64 string"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	}
	return "a whole number"
}

// isText reports whether a scalar is a string to YAML; dates are, because no field takes them
// otherwise.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge")
}

func (d *decoder) text(n *yaml.Node) (protoreflect.Value, bool) {
	if IsWord(n) {
		d.fault(n, CodeValue, "expected a string, got the boolean %s of YAML 1.1; put it in quotes", n.Value)
		return protoreflect.Value{}, false
	}
	if !isText(n) {
		hint := ""
		if n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!bool" {
			hint = "; put it in quotes"
		}
		d.fault(n, CodeValue, "expected a string, got %s%s", describe(n), hint)
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfString(n.Value), true
}

func (d *decoder) boolean(n *yaml.Node) (protoreflect.Value, bool) {
	b, ok := truth(n)
	if !ok {
		d.fault(n, CodeValue, "expected true or false, got %s", describe(n))
	}
	return protoreflect.ValueOfBool(b), ok
}

// truth reads a boolean: YAML's own, and the unquoted words that Kubernetes takes for one as well.
func truth(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" && (n.Tag != "!!str" || n.Style != 0) {
		return false, false
	}
	switch n.Value {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
		return false, true
	}
	return false, false
}

// IsWord reports whether a scalar is a boolean to YAML 1.1 alone: one of its words (yes, off, y)
// without quotes. Kubernetes' tools read that version.
func IsWord(n *yaml.Node) bool {
	_, ok := truth(n)
	return ok && n.Tag == "!!str"
}

// KeyText is a key as Kubernetes' tools have it, to which all keys are strings: booleans and
// numbers are those of YAML 1.1, however they are written.
func KeyText(n *yaml.Node) string {
	if b, ok := truth(n); ok {
		return strconv.FormatBool(b)
	}
	if n.Tag == "!!int" {
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return strconv.FormatInt(i, 10)
		}
	}
	if f, ok := number(n); ok && n.Tag == "!!float" {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return n.Value
}

func (d *decoder) enum(n *yaml.Node, of protoreflect.EnumDescriptor) (protoreflect.Value, bool) {
	if v := of.Values().ByName(protoreflect.Name(n.Value)); v != nil {
		return protoreflect.ValueOfEnum(v.Number()), true
	}
	if of.FullName() == "google.protobuf.NullValue" && IsNull(n) {
		return protoreflect.ValueOfEnum(0), true
	}
	if number, err := strconv.ParseInt(n.Value, 10, 32); err == nil && n.Tag == "!!int" {
		if v := of.Values().ByNumber(protoreflect.EnumNumber(number)); v != nil {
			return protoreflect.ValueOfEnum(v.Number()), true
		}
	}
	names := enumNames(of)
	hint := ""
	if best := nearest.Name(n.Value, names); best != "" {
		hint = fmt.Sprintf("; did you mean %s?", best)
	}
	d.fault(n, CodeValue, "Unsupported value: %q: expected one of %s%s", clip(n.Value), strings.Join(names, ", "), hint)
	return protoreflect.Value{}, false
}

func enumNames(of protoreflect.EnumDescriptor) []string {
	names := make([]string, of.Values().Len())
	for i := range names {
		names[i] = string(of.Values().Get(i).Name())
	}
	return names
}

// bytes reads base64 in either alphabet, padded or not.
func (d *decoder) bytes(n *yaml.Node) (protoreflect.Value, bool) {
	text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(n.Value, "="))
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || !isText(n) && n.Tag != "!!binary" {
		d.fault(n, CodeValue, "expected a base64 string, got %s", describe(n))
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfBytes(b), true
}

func (d *decoder) float(n *yaml.Node, kind protoreflect.Kind) (protoreflect.Value, bool) {
	f, ok := number(n)
	if !ok || kind == protoreflect.FloatKind && !math.IsInf(f, 0) && math.Abs(f) > math.MaxFloat32 {
		d.fault(n, CodeValue, "expected a number, got %s", describe(n))
		return protoreflect.Value{}, false
	}
	if kind == protoreflect.FloatKind {
		return protoreflect.ValueOfFloat32(float32(f)), true
	}
	return protoreflect.ValueOfFloat64(f), true
}

// number reads a number as YAML or, in quotes, as JSON writes it.
func number(n *yaml.Node) (float64, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return 0, false
	case n.Tag == "!!int" || n.Tag == "!!float":
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return float64(i), true
		}
		// The parser reads what only YAML writes: 0o17, 1_000, .inf.
		var f float64
		err := n.Decode(&f)
		return f, err == nil
	case isText(n) && n.Value == "NaN":
		return math.NaN(), true
	case isText(n) && n.Value == "Infinity":
		return math.Inf(1), true
	case isText(n) && n.Value == "-Infinity":
		return math.Inf(-1), true
	case isText(n):
		f, err := strconv.ParseFloat(n.Value, 64)
		return f, err == nil && plainDigits(n.Value)
	}
	return 0, false
}

// plainDigits reports whether a number is written as JSON writes it.
func plainDigits(text string) bool {
	return text != "" && strings.Trim(text, "+-.eE0123456789") == ""
}

func (d *decoder) integer(n *yaml.Node, kind protoreflect.Kind) (protoreflect.Value, bool) {
	low, high := bounds(kind)
	if unsigned(kind) {
		u, ok := wholeUnsigned(n)
		if ok && u <= high {
			return unsignedValue(u, kind), true
		}
	} else if i, ok := whole(n); ok && i >= low && (i < 0 || uint64(i) <= high) {
		return signedValue(i, kind), true
	}
	d.fault(n, CodeValue, "expected a whole number from %d to %d, got %s", low, high, describe(n))
	return protoreflect.Value{}, false
}

// whole reads a whole number: as YAML writes it, in quotes, or as a float without a fraction.
func whole(n *yaml.Node) (int64, bool) {
	if i, err := strconv.ParseInt(n.Value, digits(n), 64); err == nil {
		return i, n.Tag == "!!int" || isText(n)
	}
	f, ok := number(n)
	return int64(f), ok && f == math.Trunc(f) && math.Abs(f) < 1<<63
}

func wholeUnsigned(n *yaml.Node) (uint64, bool) {
	if u, err := strconv.ParseUint(n.Value, digits(n), 64); err == nil {
		return u, n.Tag == "!!int" || isText(n)
	}
	f, ok := number(n)
	return uint64(f), ok && f == math.Trunc(f) && f >= 0 && f < 1<<64
}

// digits returns the base for a number: YAML's prefixes count outside of quotes alone.
func digits(n *yaml.Node) int {
	if n.Tag == "!!int" {
		return 0
	}
	return 10
}

func unsigned(kind protoreflect.Kind) bool {
	switch kind {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return true
	}
	return false
}

func bounds(kind protoreflect.Kind) (low int64, high uint64) {
	switch kind {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxUint64
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func unsignedValue(u uint64, kind protoreflect.Kind) protoreflect.Value {
	if kind == protoreflect.Uint32Kind || kind == protoreflect.Fixed32Kind {
		return protoreflect.ValueOfUint32(uint32(u))
	}
	return protoreflect.ValueOfUint64(u)
}

func signedValue(i int64, kind protoreflect.Kind) protoreflect.Value {
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(i))
	}
	return protoreflect.ValueOfInt64(i)
}

// mapKey reads a map's key, which is a string in JSON whatever its type.
func (d *decoder) mapKey(n *yaml.Node, fd protoreflect.FieldDescriptor) (protoreflect.MapKey, bool) {
	if fd.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(KeyText(n)).MapKey(), true
	}
	if fd.Kind() == protoreflect.BoolKind && (n.Value == "true" || n.Value == "false") {
		return protoreflect.ValueOfBool(n.Value == "true").MapKey(), true
	}
	v, ok := d.scalar(n, fd)
	if !ok {
		return protoreflect.MapKey{}, false
	}
	return v.MapKey(), true
}
