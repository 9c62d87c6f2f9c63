package envoyfilter

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/structpb"

	_ "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"                   // Istio's own filters: what `@type` may name
	_ "istio.io/api/envoy/config/filter/network/metadata_exchange"            // as above
	_ "istio.io/api/envoy/config/filter/network/tcp_cluster_rewrite/v2alpha1" // as above
	_ "istio.io/api/envoy/extensions/stats"                                   // as above

	_ "github.com/coxswain-mesh/coxswain/plugins/internal/envoytypes" // what else `@type` may name
)

const (
	typeKey     = "@type"
	typePrefix  = "type.googleapis.com/"
	typedStruct = typePrefix + "xds.type.v3.TypedStruct"
)

// decode reads a value as the message that it is. Fields that Envoy doesn't know are left out, as
// istiod does.
func decode(value *structpb.Struct, into proto.Message) error {
	text, err := protojson.Marshal(withKnownTypes(value))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, into)
}

// withKnownTypes makes messages of types that no library here knows typed structs: Envoy reads
// those as the type that they name.
func withKnownTypes(s *structpb.Struct) *structpb.Struct {
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(s.GetFields()))}
	for k, v := range s.GetFields() {
		out.Fields[k] = withKnownValues(v)
	}
	url := out.Fields[typeKey].GetStringValue()
	if url == "" || known(url) {
		return out
	}
	delete(out.Fields, typeKey)
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		typeKey:    structpb.NewStringValue(typedStruct),
		"type_url": structpb.NewStringValue(url),
		"value":    structpb.NewStructValue(out),
	}}
}

func withKnownValues(v *structpb.Value) *structpb.Value {
	switch x := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return structpb.NewStructValue(withKnownTypes(x.StructValue))
	case *structpb.Value_ListValue:
		out := make([]*structpb.Value, len(x.ListValue.GetValues()))
		for i, e := range x.ListValue.GetValues() {
			out[i] = withKnownValues(e)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: out})
	}
	return v
}

func known(url string) bool {
	_, err := protoregistry.GlobalTypes.FindMessageByURL(url[strings.LastIndex(url, "/")+1:])
	return err == nil
}
