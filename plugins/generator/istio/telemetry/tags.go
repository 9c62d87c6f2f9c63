package telemetry

import (
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	meshv1 "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"
)

// CustomTags are tags of Telemetry, in no order.
func CustomTags(tags map[string]*api.Tracing_CustomTag) []*tracingv3.CustomTag {
	var out []*tracingv3.CustomTag
	for name, t := range tags {
		switch x := t.GetType().(type) {
		case *api.Tracing_CustomTag_Environment:
			out = append(out, environment(name, x.Environment.Name, x.Environment.DefaultValue))
		case *api.Tracing_CustomTag_Header:
			out = append(out, header(name, x.Header.Name, x.Header.DefaultValue))
		case *api.Tracing_CustomTag_Literal:
			out = append(out, Literal(name, x.Literal.Value))
		case *api.Tracing_CustomTag_Formatter:
			out = append(out, &tracingv3.CustomTag{Tag: name, Type: &tracingv3.CustomTag_Value{Value: x.Formatter.Value}})
		}
	}
	return out
}

// ProxyTags are tags of a proxy's own settings, in no order.
func ProxyTags(tags map[string]*meshv1.Tracing_CustomTag) []*tracingv3.CustomTag {
	var out []*tracingv3.CustomTag
	for name, t := range tags {
		switch x := t.GetType().(type) {
		case *meshv1.Tracing_CustomTag_Environment:
			out = append(out, environment(name, x.Environment.Name, x.Environment.DefaultValue))
		case *meshv1.Tracing_CustomTag_Header:
			out = append(out, header(name, x.Header.Name, x.Header.DefaultValue))
		case *meshv1.Tracing_CustomTag_Literal:
			out = append(out, Literal(name, x.Literal.Value))
		}
	}
	return out
}

// Literal is a tag that always says the same.
func Literal(name, value string) *tracingv3.CustomTag {
	return &tracingv3.CustomTag{Tag: name, Type: &tracingv3.CustomTag_Literal_{Literal: &tracingv3.CustomTag_Literal{Value: value}}}
}

func environment(tag, name, value string) *tracingv3.CustomTag {
	return &tracingv3.CustomTag{Tag: tag, Type: &tracingv3.CustomTag_Environment_{
		Environment: &tracingv3.CustomTag_Environment{Name: name, DefaultValue: value},
	}}
}

func header(tag, name, value string) *tracingv3.CustomTag {
	return &tracingv3.CustomTag{Tag: tag, Type: &tracingv3.CustomTag_RequestHeader{
		RequestHeader: &tracingv3.CustomTag_Header{Name: name, DefaultValue: value},
	}}
}
