package kinds

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// AutoAddresses is an annotation that rows of ServiceEntries have whose object came with
// status.addresses: addresses that were given to hosts without any. Its value is a JSON list of
// Address.
const AutoAddresses = "coxswain.io/auto-addresses"

// HealthCondition is an annotation that rows of WorkloadEntries have whose object came with a
// condition of its health: the condition's status.
const HealthCondition = "coxswain.io/healthy"

// LoadBalancer is an annotation that rows of Ingresses have whose object came with addresses in its
// status: a JSON list of ingress.Address.
const LoadBalancer = "coxswain.io/load-balancer"

// MaxRow is how large a row may be, in bytes: it must fit into a message of 1 MiB.
const MaxRow = 1<<20 - 16<<10

// TooLarge says of a row with that many bytes why it is refused (CodeSize).
func TooLarge(size int) string {
	return fmt.Sprintf("has %d bytes, which is more than the %d that a resource may have", size, MaxRow)
}

// Healthy reports whether the object of a WorkloadEntry's row was found healthy.
func Healthy(row *pb.Row) bool { return row.Annotations[HealthCondition] == "True" }

// Kept are the annotations of rows that their objects' authors haven't written.
func Kept() []string { return []string{AutoAddresses, HealthCondition, LoadBalancer} }

// Address is an address that was given to a host; with an empty host, to any host of the entry.
type Address struct {
	Host  string `json:"host,omitempty"`
	Value string `json:"value"`
}

// Decode returns the spec that a row carries, as in Decode[*networking.VirtualService](row). It
// fails where the payload is no such message.
func Decode[M proto.Message](row *pb.Row) (M, error) {
	var kind M
	spec := kind.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(row.Payload, spec); err != nil {
		return kind, fmt.Errorf("row %s (%s): no %s: %w", row.Key, row.Source, kind.ProtoReflect().Descriptor().FullName(), err)
	}
	return spec, nil
}

// Mesh returns the mesh's settings in a state; where there are none, or they can't be read, empty
// ones. The error says why they can't be: no config source publishes such a row. Source: Istio,
// MeshConfig.
func Mesh(s *state.State) (*mesh.MeshConfig, error) {
	row := s.Row(state.Mesh, state.Mesh)
	if row == nil {
		return &mesh.MeshConfig{}, nil
	}
	settings, err := Decode[*mesh.MeshConfig](row)
	if err != nil {
		return &mesh.MeshConfig{}, err
	}
	return settings, nil
}

// Encode returns a spec as a row's payload: binary, equal for equal messages.
func Encode(spec proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(spec)
}

// Key returns the key of a resource's row, NAMESPACE/NAME.
func Key(namespace, name string) string { return namespace + "/" + name }

// SplitKey returns namespace and name of a key.
func SplitKey(key string) (namespace, name string) {
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

// Reached returns the addresses that an Ingress's status has.
func Reached(row *pb.Row) []ingress.Address {
	var list []ingress.Address
	if text := row.Annotations[LoadBalancer]; text != "" {
		// The value is ours; one that isn't means no addresses.
		_ = json.Unmarshal([]byte(text), &list)
	}
	return list
}

// Allocated returns the addresses that a ServiceEntry's row carries beside its spec.
func Allocated(row *pb.Row) []Address {
	var list []Address
	if text := row.Annotations[AutoAddresses]; text != "" {
		// The value is ours; one that isn't means no addresses.
		_ = json.Unmarshal([]byte(text), &list)
	}
	return list
}
