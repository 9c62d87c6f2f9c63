package config

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Tables of Istio's resources.
const (
	VirtualServices  = "networking.istio.io/VirtualService"
	DestinationRules = "networking.istio.io/DestinationRule"
	Gateways         = "networking.istio.io/Gateway"
	Sidecars         = "networking.istio.io/Sidecar"
)

// Meta is what every resource has besides its spec.
type Meta struct {
	Key, Namespace, Name string
	Created              int64
	// Undated: Created is when it was first seen, so that equal times don't say who was first.
	Undated bool
}

func parseMeta(row *pb.Row) Meta {
	namespace, name, _ := strings.Cut(row.Key, "/")
	return Meta{Key: row.Key, Namespace: namespace, Name: name, Created: row.Created, Undated: row.Undated}
}

// Before orders resources as Istio does where age decides: the oldest first, then by name, then by
// namespace.
// Source: Istio, pilot/pkg/model/config.go, sortByCreationComparator.
func (m Meta) Before(o Meta) int {
	return cmp.Or(cmp.Compare(m.Created, o.Created), strings.Compare(m.Name, o.Name), strings.Compare(m.Namespace, o.Namespace))
}

// Ties reports whether it is not known which of two resources was there first, so that none may
// take from the other what only one can have. Those of one namespace are ordered by name.
func (m Meta) Ties(o Meta) bool {
	return m.Namespace != o.Namespace && m.Created == o.Created && (m.Undated || o.Undated)
}

// Age returns what says which of two resources is older.
func (m Meta) Age() Meta { return m }

// Path is the resource's path in Istio's API; kind is in lower case with dashes.
func (m Meta) Path(kind string) string {
	return "/apis/networking.istio.io/v1/namespaces/" + m.Namespace + "/" + kind + "/" + m.Name
}

// DestinationRule is a rule for clients of a host.
type DestinationRule struct {
	Meta
	// Host is the full name.
	Host string
	// Policy: it was derived of policies of the Gateway API for the host. It fills in what the
	// other rules for the host leave open.
	Policy bool
	Spec   *networking.DestinationRule
}

// ParseDestinationRule reads a row; domain is the mesh's DNS domain.
func ParseDestinationRule(row *pb.Row, domain string) (*DestinationRule, error) {
	r := &DestinationRule{Meta: parseMeta(row), Policy: isPolicy(row), Spec: &networking.DestinationRule{}}
	if err := unmarshal(row, r.Spec); err != nil {
		return nil, err
	}
	r.Host = istio.Resolve(r.Spec.Host, r.Namespace, domain)
	if r.Policy {
		showOwn(r.Spec.TrafficPolicy)
	}
	return r, nil
}

// Gateway says what gateways listen to.
type Gateway struct {
	Meta
	Spec *networking.Gateway
	// Front says who serves it, in the place of the selector.
	Front Front
}

// ParseGateway reads a row.
func ParseGateway(row *pb.Row) (*Gateway, error) {
	g := &Gateway{Meta: parseMeta(row), Spec: &networking.Gateway{}}
	g.Front = frontOf(row, g.Namespace)
	return g, unmarshal(row, g.Spec)
}

// ForDatagrams reports whether a server of the Gateway takes datagrams: one of UDP, if the Gateway
// was derived. What Istio's own ones call UDP is a server for connections, as in istiod.
func (g *Gateway) ForDatagrams(s *networking.Server) bool {
	return g.Front.Given() && ParseProtocol(s.GetPort().GetProtocol()) == UDP
}

// Sidecar says what a workload reaches and serves.
type Sidecar struct {
	Meta
	Spec *networking.Sidecar
}

// ParseSidecar reads a row.
func ParseSidecar(row *pb.Row) (*Sidecar, error) {
	s := &Sidecar{Meta: parseMeta(row), Spec: &networking.Sidecar{}}
	return s, unmarshal(row, s.Spec)
}

func unmarshal(row *pb.Row, m proto.Message) error {
	if err := proto.Unmarshal(row.Payload, m); err != nil {
		return fmt.Errorf("%s %s: %w", m.ProtoReflect().Descriptor().Name(), row.Key, err)
	}
	return nil
}
