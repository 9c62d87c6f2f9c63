package secrets

import (
	"errors"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// gatewayGroup is the Gateway API's.
const gatewayGroup = "gateway.networking.k8s.io"

// Grants has ReferenceGrants of the Gateway API: NAMESPACE/NAME, with a Grant as JSON.
const Grants = gatewayGroup + "/ReferenceGrant"

// Grant is the spec of a ReferenceGrant: what objects of other namespaces may refer to which of its own.
// Source: Gateway API, ReferenceGrantSpec.
type Grant struct {
	From []From `json:"from" yaml:"from"`
	To   []To   `json:"to" yaml:"to"`
}

// From names the objects of a kind in a namespace.
type From struct {
	Group     string `json:"group" yaml:"group"`
	Kind      string `json:"kind" yaml:"kind"`
	Namespace string `json:"namespace" yaml:"namespace"`
}

// To names an object of the grant's namespace; without a name all of the kind.
type To struct {
	Group string `json:"group" yaml:"group"`
	Kind  string `json:"kind" yaml:"kind"`
	Name  string `json:"name,omitempty" yaml:"name"`
}

// Check says what is missing.
func (g Grant) Check() error {
	switch {
	case len(g.From) == 0, len(g.To) == 0:
		return errors.New("needs from and to, each with an entry at least")
	case slices.ContainsFunc(g.From, func(f From) bool { return f.Kind == "" || f.Namespace == "" }):
		return errors.New("each entry of from needs a kind and a namespace")
	case slices.ContainsFunc(g.To, func(t To) bool { return t.Kind == "" }):
		return errors.New("each entry of to needs a kind")
	}
	return nil
}

// Allows reports whether Gateways of a namespace may refer to an object of the grant's.
func (g Grant) Allows(from string, o Object) bool {
	return slices.Contains(g.From, From{gatewayGroup, "Gateway", from}) &&
		slices.ContainsFunc(g.To, func(t To) bool { return t.Group == "" && t.Kind == o.Kind && (t.Name == "" || t.Name == o.Name) })
}

// Encode returns the payload of a row.
func (g Grant) Encode() []byte { return encode(g) }

// DecodeGrant reads a row of Grants.
func DecodeGrant(row *pb.Row) (Grant, error) { return decode[Grant](row) }
