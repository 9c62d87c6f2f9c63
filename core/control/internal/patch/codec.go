package patch

import (
	"bytes"
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
func (p *Patcher) decode(typeURL string, resources []*pb.Resource) ([]*view.Body, error) {
	seen := map[string]bool{}
	var bodies []*view.Body
	for _, r := range resources {
		if r.Name == "" || seen[r.Name] {
			return nil, fmt.Errorf("it answered with a resource without a name, or with two of the name %q", r.Name)
		}
		seen[r.Name] = true
		value, err := p.value(typeURL, r)
		if err == nil {
			err = view.CheckName(typeURL, r.Name, value)
		}
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, view.NewBody(typeURL, r.Name, value, 0))
	}
	return bodies, nil
}

// value is the bytes of a resource that a patch answered with.
func (p *Patcher) value(typeURL string, r *pb.Resource) ([]byte, error) {
	msg, err := newMessage(typeURL)
	switch {
	case err != nil && p.ready.Json:
		return nil, err
	case err != nil: // a type that this binary doesn't know: taken as it is
		return r.Bytes, nil
	case p.ready.Json:
		err = protojson.Unmarshal(r.Bytes, msg)
	default:
		err = proto.Unmarshal(r.Bytes, msg)
	}
	if err != nil {
		return nil, fmt.Errorf("it answered with %s, which does not decode: %w", r.Name, err)
	}
	if err := envoyrules.CheckAll(msg); err != nil {
		return nil, fmt.Errorf("it answered with %s, which Envoy would refuse: %w", r.Name, err)
	}
	if !p.ready.Json {
		return r.Bytes, nil
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(msg)
}

// newMessage returns an empty message of a resource type.
func newMessage(typeURL string) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil, fmt.Errorf("the type %s is not known here: %w", typeURL, err)
	}
	return t.New().Interface(), nil
}
