// Package envoyrules checks messages by the rules that Envoy's own fields have
// (protoc-gen-validate), and by others that Envoy has: what breaks one, a proxy refuses. The core
// checks so what generators and patches make, but for types that a generator says it has checked;
// then it can name the rows at fault, too.
package envoyrules

import (
	"errors"
	"fmt"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// Check checks a message and the messages in it, up to those that are wrapped
// (google.protobuf.Any). A message without rules passes. What Envoy refuses besides, of routes and
// listeners, is checked too.
func Check(m proto.Message) error {
	if v, ok := m.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	return besides(m)
}

// besides checks what no rule of a field says.
func besides(m proto.Message) error {
	if err := within(m.ProtoReflect()); err != nil {
		return err
	}
	switch m := m.(type) {
	case *route.RouteConfiguration:
		return routeConfiguration(m)
	case *route.VirtualHost:
		return virtualHost(m)
	case *route.Route:
		return routeRules(m)
	case *listener.Listener:
		return filterChains(m)
	case *hcm.HttpConnectionManager:
		return routeConfiguration(m.GetRouteConfig())
	}
	return nil
}

// CheckAll checks wrapped messages too, at any depth. The error says where:
// filter_chains[0].filters[1].typed_config. A wrapped message of a type that this program doesn't
// know passes.
func CheckAll(m proto.Message) error {
	if err := Check(m); err != nil {
		return err
	}
	return walk(m.ProtoReflect(), "")
}

// walk looks for wrapped messages below a message at a path.
func walk(m protoreflect.Message, path string) (err error) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		return wrapped(a, path)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		err = field(f, v, below(path, string(f.Name())))
		return err == nil
	})
	return err
}

func field(f protoreflect.FieldDescriptor, v protoreflect.Value, path string) (err error) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return nil
		}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			err = walk(v.Message(), fmt.Sprintf("%s[%q]", path, k.String()))
			return err == nil
		})
	case f.Message() == nil:
	case f.IsList():
		for i := 0; i < v.List().Len() && err == nil; i++ {
			err = walk(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		err = walk(v.Message(), path)
	}
	return err
}

func wrapped(a *anypb.Any, path string) error {
	if a.TypeUrl == "" {
		return nil
	}
	m, err := a.UnmarshalNew()
	if errors.Is(err, protoregistry.NotFound) {
		return nil
	}
	if err == nil {
		err = Check(m)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", path, a.MessageName(), err)
	}
	return walk(m.ProtoReflect(), path)
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
