package manifest

import (
	"maps"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Matches reports whether the entry serves the proxy: everything that `select` gives must match. A
// node that lacks what a pattern asks for doesn't match it, not even `*`.
func (s *Select) Matches(node *corev3.Node) bool {
	return s.matches(node, "")
}

// NamedListeners is the GENERATOR of a proxy that names none, but asks for listeners by name from
// the first: only clients of gRPC do.
const NamedListeners = "grpc"

// matches is Matches, where generator stands for what the proxy's metadata doesn't say.
func (s *Select) matches(node *corev3.Node, generator string) bool {
	if s == nil {
		return true
	}
	metadata := node.GetMetadata()
	if metadata.GetFields()["GENERATOR"] == nil && generator != "" {
		metadata = &structpb.Struct{Fields: maps.Clone(metadata.GetFields())}
		if metadata.Fields == nil {
			metadata.Fields = map[string]*structpb.Value{}
		}
		metadata.Fields["GENERATOR"] = structpb.NewStringValue(generator)
	}
	return s.ID.holds(node.GetId()) &&
		s.Cluster.holds(node.GetCluster()) &&
		s.Locality.holds(locality(node.GetLocality())) &&
		s.UserAgent.agent(node) &&
		s.Generator.value(metadata, "GENERATOR") &&
		s.Namespace.value(metadata, "NAMESPACE") &&
		allIn(s.Metadata, metadata) &&
		allIn(s.Labels, metadata.GetFields()["LABELS"].GetStructValue())
}

func allIn(globs map[string]Glob, values *structpb.Struct) bool {
	for path, glob := range globs {
		if !glob.value(values, path) {
			return false
		}
	}
	return true
}

// holds matches a field of the node; a glob that was not given holds always.
func (g Glob) holds(s string) bool { return g == "" || s != "" && g.Match(s) }

func (g Glob) value(in *structpb.Struct, path string) bool {
	return g == "" || g.any(lookup(in, path))
}

// any matches a metadata value, or one element of a list.
func (g Glob) any(v *structpb.Value) bool {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return g.Match(v.StringValue)
	case *structpb.Value_BoolValue:
		return g.Match(strconv.FormatBool(v.BoolValue))
	case *structpb.Value_NumberValue:
		return g.Match(strconv.FormatFloat(v.NumberValue, 'f', -1, 64))
	case *structpb.Value_ListValue:
		for _, one := range v.ListValue.GetValues() {
			if g.any(one) {
				return true
			}
		}
	}
	return false
}

// lookup follows a path; a key that has dots of its own is found too, the longest first.
func lookup(in *structpb.Struct, path string) *structpb.Value {
	if v, ok := in.GetFields()[path]; ok {
		return v
	}
	for i := len(path) - 1; i > 0; i-- {
		if path[i] != '.' {
			continue
		}
		if inner := in.GetFields()[path[:i]].GetStructValue(); inner != nil {
			if v := lookup(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// agent matches the client's name, or name/version.
func (g Glob) agent(node *corev3.Node) bool {
	name := node.GetUserAgentName()
	if g == "" || name != "" && g.Match(name) {
		return true
	}
	version := node.GetUserAgentVersion()
	if v := node.GetUserAgentBuildVersion().GetVersion(); version == "" && v != nil {
		version = strings.Join([]string{number(v.MajorNumber), number(v.MinorNumber), number(v.Patch)}, ".")
	}
	return name != "" && version != "" && g.Match(name+"/"+version)
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func locality(l *corev3.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}
