package secrets

import (
	"errors"
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Grants has ReferenceGrants of the Gateway API: NAMESPACE/NAME, with a Grant as JSON.
const Grants = gateway.GroupName + "/ReferenceGrant"

// Grant says what objects of other namespaces may refer to which of its own namespace.
type Grant struct{ gateway.ReferenceGrantSpec }

// Check says what is missing.
func (g Grant) Check() error {
	switch {
	case len(g.From) == 0, len(g.To) == 0:
		return errors.New("needs from and to, each with an entry at least")
	case slices.ContainsFunc(g.From, func(f gateway.ReferenceGrantFrom) bool { return f.Kind == "" || f.Namespace == "" }):
		return errors.New("each entry of from needs a kind and a namespace")
	case slices.ContainsFunc(g.To, func(t gateway.ReferenceGrantTo) bool { return t.Kind == "" }):
		return errors.New("each entry of to needs a kind")
	}
	return nil
}

// Allows reports whether Gateways of a namespace may refer to an object of the grant's.
func (g Grant) Allows(from string, o Object) bool {
	by := gateway.ReferenceGrantFrom{Group: gateway.GroupName, Kind: "Gateway", Namespace: gateway.Namespace(from)}
	return slices.Contains(g.From, by) && slices.ContainsFunc(g.To, func(t gateway.ReferenceGrantTo) bool {
		return t.Group == "" && string(t.Kind) == o.Kind && (t.Name == nil || *t.Name == "" || string(*t.Name) == o.Name)
	})
}

// Encode returns the payload of a row.
func (g Grant) Encode() []byte { return encode(g) }

// DecodeGrant reads a row of Grants.
func DecodeGrant(row *pb.Row) (Grant, error) { return decode[Grant](row) }
