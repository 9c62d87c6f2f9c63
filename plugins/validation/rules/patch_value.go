package rules

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/envoytypes"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// patchValue checks that a value is of the type that it is merged into or added as. Fields that
// this version of Envoy's types has not are warnings: another version may have them.
func (c *checker) patchValue(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch) {
	object := envoytypes.Patched(p.ApplyTo)
	if object == nil {
		return
	}
	text, err := protojson.Marshal(p.Patch.Value)
	if err != nil {
		c.fail(badPatchValue, at, "Envoy filter: %v", err)
		return
	}
	node, fault := protoyaml.Chunk{Text: text}.Parse()
	if fault != nil {
		c.fail(badPatchValue, at, "Envoy filter: %s", fault.Reason)
		return
	}
	wrong := protoyaml.Decode(node, string(at), object)
	for _, f := range wrong {
		switch f.Code {
		case protoyaml.CodeUnknown:
			c.warn(unknownField, path(f.Field), "Envoy filter: unknown fields are used: %s", f.Reason)
		case protoyaml.CodeUnknownType:
			c.fail(badPatchValue, path(f.Field), "Envoy filter: referenced type unknown (hint: try using the v3 XDS API): %s", f.Reason)
		default:
			c.fail(badPatchValue, path(f.Field), "Envoy filter: %s", f.Reason)
		}
	}
	if len(wrong) == 0 {
		c.fieldRules(at, structpb.NewStructValue(p.Patch.Value), object.ProtoReflect())
	}
	c.unconfiguredFilter(at, p, object)
}

// unconfiguredFilter warns of a filter that is put into a list without saying what it is.
func (c *checker) unconfiguredFilter(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch, object proto.Message) {
	switch p.Patch.Operation {
	case networking.EnvoyFilter_Patch_MERGE, networking.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST:
		return
	}
	name, configured := "", true
	switch f := object.(type) {
	case *listener.Filter:
		name, configured = f.Name, f.ConfigType != nil
	case *hcm.HttpFilter:
		name, configured = f.Name, f.ConfigType != nil
	case *listener.ListenerFilter:
		name, configured = f.Name, f.ConfigType != nil
	default:
		return
	}
	c.filterName(at.field("name"), name)
	switch {
	case name == "":
		c.warn(unconfigured, at, "Envoy filter: a filter without a name cannot be matched by other patches, and proxies refuse it").hint("add name")
	case !configured:
		c.warn(unconfigured, at, "Envoy filter: filter %s has no typed_config: proxies refuse it", quote(name)).hint(`add typed_config with "@type"`)
	}
}
