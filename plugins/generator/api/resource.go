package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// bodies returns what makes the body of a resource of a row's payload: the message that it is, of
// Istio's kinds, and google.protobuf.Struct of all others, as istiod has it.
func bodies(table string) (func(payload []byte) (*anypb.Any, error), bool) {
	if k, ok := kinds.Lookup(table); ok {
		url := "type.googleapis.com/" + string(k.New().ProtoReflect().Descriptor().FullName())
		return func(payload []byte) (*anypb.Any, error) { return &anypb.Any{TypeUrl: url, Value: payload}, nil }, true
	}
	_, ok := kinds.Other(table)
	return func(payload []byte) (*anypb.Any, error) {
		var spec structpb.Struct
		if err := protojson.Unmarshal(payload, &spec); err != nil {
			return nil, err
		}
		body := &anypb.Any{}
		return body, anypb.MarshalFrom(body, &spec, proto.MarshalOptions{Deterministic: true})
	}, ok
}

// objects are the resources of a kind, by name: NAMESPACE/NAME, or /NAME of one without a
// namespace.
func objects(t *state.Table, body func(payload []byte) (*anypb.Any, error)) ([]sdk.Resource, error) {
	out := make([]sdk.Resource, 0, t.Len())
	for key, r := range t.All() {
		spec, err := body(r.Payload)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(key, "/") {
			key = "/" + key
		}
		one, err := object(key, r, spec)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b sdk.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// object is one (istio.mcp.v1alpha1.Resource). Its version is the first characters of a hash, the
// same for the same object in every replica.
func object(name string, r *pb.Row, spec *anypb.Any) (sdk.Resource, error) {
	m := &mcp.Resource{
		Metadata: &mcp.Metadata{Name: name, Labels: r.Labels, Annotations: maps.Clone(r.Annotations)},
		Body:     spec,
	}
	for _, a := range kinds.Kept() {
		delete(m.Metadata.Annotations, a) // not its author's
	}
	if r.Created != 0 {
		m.Metadata.CreateTime = timestamppb.New(time.Unix(0, r.Created))
	}
	encode := proto.MarshalOptions{Deterministic: true}
	plain, err := encode.Marshal(m)
	if err != nil {
		return sdk.Resource{}, err
	}
	sum := sha256.Sum256(plain)
	m.Metadata.Version = hex.EncodeToString(sum[:8])
	body, err := encode.Marshal(m)
	return sdk.Resource{Name: name, Body: body}, err
}
