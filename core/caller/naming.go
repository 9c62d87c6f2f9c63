package caller

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Naming says what the names mean that callers have and that nodes give themselves. The core knows
// no form of them: the command hands it over.
type Naming struct {
	// Operators is the namespace whose callers may ask everything.
	Operators string
	// Trusted returns those of a caller's identities that count here at all, by what rows say; nil:
	// all do. The error, a gRPC status of code PermissionDenied, says why none does.
	Trusted func(identities []string, rows func(table string) []*pb.Row) ([]string, error)
	// May returns those of a caller's identities that the node may have. The error, a gRPC status
	// of code PermissionDenied, says why it may have none.
	May func(node *corev3.Node, identities []string) ([]string, error)
	// Namespaces returns those that identities are of. Who is of none may ask nothing.
	Namespaces func(identities []string) []string
	// NamespaceOf returns the namespace that a node, which may be nil, says it is of; it may be
	// empty.
	NamespaceOf func(node *corev3.Node) string
	// Short is what people call a node, which may be nil, besides its id; empty: nothing. nil: no
	// node has a short name.
	Short func(node *corev3.Node) string
}
