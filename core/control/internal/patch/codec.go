package patch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// encode turns a call's resources into JSON if the patch asked for it.
func (p *Patcher) encode(m *pb.Patch) error {
	if !p.ready.Json {
		return nil
	}
	for _, r := range m.Resources {
		msg, err := newMessage(m.Type)
		if err != nil {
			return err
		}
		if err := proto.Unmarshal(r.Bytes, msg); err != nil {
			return fmt.Errorf("%s does not decode: %w", r.Name, err)
		}
		text, err := protojson.Marshal(msg)
		if err != nil {
			return fmt.Errorf("%s has no JSON: %w", r.Name, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil { // protojson's spaces differ from run to run
			return err
		}
		r.Bytes = compact.Bytes()
	}
	return nil
}

// decode checks what a patch answered, by the rules of Envoy's fields too, and makes bodies of it.
// Of a resource that Envoy would refuse the pieces that are at fault are as before; spoilt says
// which.
func (p *Patcher) decode(typeURL string, resources []*pb.Resource, before func(name string) *view.Body) (bodies []*view.Body, spoilt string, err error) {
	seen := map[string]bool{}
	for _, r := range resources {
		if r.Name == "" || seen[r.Name] {
			return nil, "", fmt.Errorf("it answered with a resource without a name, or with two of the name %q", r.Name)
		}
		seen[r.Name] = true
		value, refused, err := p.value(typeURL, r)
		if err == nil {
			err = view.CheckName(typeURL, r.Name, value)
		}
		if err != nil {
			return nil, "", err
		}
		b := view.NewBody(typeURL, r.Name, value, 0)
		if refused != nil {
			var said string
			if b, said = mend(typeURL, b, before(r.Name), refused); b == nil {
				return nil, "", fmt.Errorf("it answered with %s, which Envoy would refuse: %w", r.Name, refused)
			}
			spoilt = cmp.Or(spoilt, said)
		}
		bodies = append(bodies, b)
	}
	return bodies, spoilt, nil
}

// value is the bytes of a resource that a patch answered with, and why Envoy would refuse it.
func (p *Patcher) value(typeURL string, r *pb.Resource) (value []byte, refused, err error) {
	msg, err := newMessage(typeURL)
	switch {
	case err != nil && p.ready.Json:
		return nil, nil, err
	case err != nil: // a type that this binary doesn't know: taken as it is
		return r.Bytes, nil, nil
	case p.ready.Json:
		err = protojson.Unmarshal(r.Bytes, msg)
	default:
		err = proto.Unmarshal(r.Bytes, msg)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("it answered with %s, which does not decode: %w", r.Name, err)
	}
	if value = r.Bytes; p.ready.Json {
		value, err = proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	}
	return value, envoyrules.CheckAll(msg), err
}

// newMessage returns an empty message of a resource type.
func newMessage(typeURL string) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil, fmt.Errorf("the type %s is not known here: %w", typeURL, err)
	}
	return t.New().Interface(), nil
}
