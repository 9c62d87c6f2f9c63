package istiod

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// known are the types that pages show: those that are linked, and the table of names that agents
// ask for, which is of no module that can be imported.
type known struct{ *protoregistry.Types }

func (k known) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if url == nameType {
		return nameTable(), nil
	}
	return k.Types.FindMessageByURL(url)
}

// nameTable is istio.networking.nds.v1.NameTable.
var nameTable = sync.OnceValue(func() protoreflect.MessageType {
	file, err := protodesc.NewFile(nameTables(), protoregistry.GlobalFiles)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", nameType, err)) // it is always the same
	}
	return dynamicpb.NewMessageType(file.Messages().ByName("NameTable"))
})

// nameTables describes NameTable: table, a map of host names to what is known of each.
func nameTables() *descriptorpb.FileDescriptorProto {
	const one, many = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	field := func(number int32, name string, label descriptorpb.FieldDescriptorProto_Label, message string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Label: label.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()}
		if message != "" {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".istio.networking.nds.v1.NameTable."+message)
		}
		return f
	}
	info := &descriptorpb.DescriptorProto{Name: proto.String("NameInfo"), Field: []*descriptorpb.FieldDescriptorProto{
		field(1, "ips", many, ""), field(2, "registry", one, ""), field(3, "shortname", one, ""),
		field(4, "namespace", one, ""), field(5, "alt_hosts", many, ""),
	}}
	entry := &descriptorpb.DescriptorProto{
		Name: proto.String("TableEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{field(1, "key", one, ""), field(2, "value", one, "NameInfo")},
	}
	return &descriptorpb.FileDescriptorProto{
		Name: proto.String("pkg/dns/proto/nds.proto"), Package: proto.String("istio.networking.nds.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("NameTable"), NestedType: []*descriptorpb.DescriptorProto{info, entry},
			Field: []*descriptorpb.FieldDescriptorProto{field(1, "table", many, "TableEntry")},
		}},
	}
}
