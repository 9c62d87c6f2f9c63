package main

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// table writes a message's table of fields, and methods that read it.
func (w *writer) table(m *protogen.Message) error {
	name := m.GoIdent.GoName
	call := func(method string) string { return layoutName(m) + "." + method + "(" + w.unsafe("Pointer") + "(m)" }
	w.P("// Size returns the number of bytes that AppendTo adds.")
	w.P("func (m *", name, ") Size() int { return ", call("size"), ") }")
	w.P()
	w.P("// AppendTo appends the encoded message to b.")
	w.P("func (m *", name, ") AppendTo(b []byte) []byte { return ", layoutName(m), ".appendTo(b, ", w.unsafe("Pointer"), "(m)) }")
	w.P()
	w.P("// Unmarshal adds what b holds to the message; unknown fields are skipped. Nothing of b is kept.")
	w.P("func (m *", name, ") Unmarshal(b []byte) error { return ", call("unmarshal"), ", b) }")
	w.P()
	w.P("var ", layoutName(m), " = layout{")
	w.P("fresh: func() ", w.unsafe("Pointer"), " { return ", w.unsafe("Pointer"), "(new(", name, ")) },")
	w.P("fields: []field{")
	for _, f := range m.Fields {
		k, err := tableKind(f)
		if err != nil {
			return err
		}
		row := fmt.Sprintf("{number: %d, offset: uint16(%s(%s{}.%s)), kind: %s", f.Desc.Number(), w.unsafe("Offsetof"), name, f.GoName, k)
		if f.Desc.IsList() {
			row += ", repeated: true"
		}
		if k == "kindMessage" {
			row += ", of: &" + layoutName(f.Message)
		}
		w.P(row, "},")
	}
	w.P("},")
	w.P("}")
	w.P()
	return nil
}

func layoutName(m *protogen.Message) string { return "layout" + m.GoIdent.GoName }

func (w *writer) unsafe(name string) string {
	return w.QualifiedGoIdent(protogen.GoIdent{GoName: name, GoImportPath: "unsafe"})
}

// kinds are those of sdk/proto/table.go.
var kinds = map[protoreflect.Kind]string{
	protoreflect.StringKind: "kindString", protoreflect.BytesKind: "kindBytes", protoreflect.MessageKind: "kindMessage",
	protoreflect.BoolKind: "kindBool", protoreflect.Uint32Kind: "kindUint32", protoreflect.Uint64Kind: "kindUint64",
	protoreflect.Int32Kind: "kindInt32", protoreflect.EnumKind: "kindInt32", protoreflect.Int64Kind: "kindInt64",
	protoreflect.Fixed64Kind: "kindFixed64", protoreflect.DoubleKind: "kindDouble",
}

func tableKind(f *protogen.Field) (string, error) {
	if f.Desc.IsMap() {
		switch f.Desc.MapValue().Kind() {
		case protoreflect.StringKind:
			return "kindStrings", nil
		case protoreflect.Uint32Kind:
			return "kindNumbers", nil
		}
		return "", fmt.Errorf("%s: tables know maps of strings and uint32 only", f.Desc.FullName())
	}
	return kinds[f.Desc.Kind()], nil
}
