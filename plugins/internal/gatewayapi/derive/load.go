package derive

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	experimental "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Reads are the tables that a deriver reads for Load. Those of the API are read whole; of others
// the rows of sources count, so that they alone give it nothing to do.
func Reads() []string {
	out := append(gatewayapi.Tables(), secrets.Grants)
	for _, table := range others() {
		out = append(out, table+"@sources")
	}
	return out
}

func others() []string {
	return []string{kinds.ServiceEntry, state.Services, state.Namespaces, secrets.SecretTable, secrets.ConfigMapTable, secrets.Absences}
}

// Tables are those that Load takes rows of.
func Tables() []string {
	return append(append(gatewayapi.Tables(), secrets.Grants), others()...)
}

// Load takes a row of a table for the next wave; nil: it is gone. After an error the row counts
// as it was.
func (in *Inputs) Load(table, key string, row *pb.Row) error {
	switch table {
	case gatewayapi.GatewayClass:
		return object(in.Classes, key, row)
	case gatewayapi.Gateway:
		return object(in.Gateways, key, row)
	case gatewayapi.ListenerSet:
		return object(in.ListenerSets, key, row)
	case secrets.Grants:
		return object(in.Grants, key, row)
	case gatewayapi.HTTPRoute, gatewayapi.GRPCRoute, gatewayapi.TCPRoute, gatewayapi.TLSRoute, gatewayapi.UDPRoute:
		return in.route(nameOf(kindOf(table), key), row)
	case gatewayapi.BackendTLSPolicy, gatewayapi.BackendTrafficPolicy:
		return in.policy(nameOf(kindOf(table), key), row)
	case kinds.ServiceEntry:
		return set(in.Entries, key, row, func(r *pb.Row) (*Entry, error) {
			spec, err := kinds.Decode[*networking.ServiceEntry](r)
			return &Entry{Labels: r.Labels, Spec: spec}, err
		})
	case state.Services:
		return set(in.Services, key, row, sdk.ServiceOf)
	case state.Namespaces:
		return set(in.Namespaces, key, row, func(r *pb.Row) (map[string]string, error) {
			n := &pb.Namespace{}
			err := n.Unmarshal(r.Payload)
			return n.Labels, err
		})
	case secrets.SecretTable, secrets.ConfigMapTable:
		return in.credential(nameOf(kindOf(table), key), row, false)
	case secrets.Absences:
		kind, name, _ := strings.Cut(key, "/")
		return in.credential(nameOf(kind, name), row, true)
	}
	return nil
}

func kindOf(table string) string { _, kind, _ := strings.Cut(table, "/"); return kind }

func nameOf(kind, key string) Name {
	namespace, name, inside := strings.Cut(key, "/")
	if !inside {
		return Name{Kind: kind, Name: key}
	}
	return Name{kind, namespace, name}
}

// set takes a row for an input.
func set[K comparable, V any](in *incr.Input[K, V], key K, row *pb.Row, read func(*pb.Row) (V, error)) error {
	if row == nil {
		in.Delete(key)
		return nil
	}
	value, err := read(row)
	if err == nil {
		in.Set(key, value)
	}
	return err
}

func object[S any](in *incr.Input[string, *objects.Object[S]], key string, row *pb.Row) error {
	return set(in, key, row, objects.Decode[S])
}

func (in *Inputs) route(n Name, row *pb.Row) error {
	return set(in.Routes, n, row, func(row *pb.Row) (*Route, error) {
		out := &Route{Name: n, Row: row}
		var err error
		switch n.Kind {
		case "HTTPRoute":
			out.HTTP, err = spec[gateway.HTTPRouteSpec](row)
		case "GRPCRoute":
			out.GRPC, err = spec[gateway.GRPCRouteSpec](row)
		case "TCPRoute":
			out.TCP, err = spec[gateway.TCPRouteSpec](row)
		case "UDPRoute":
			out.UDP, err = spec[gateway.UDPRouteSpec](row)
		default:
			out.TLS, err = spec[gateway.TLSRouteSpec](row)
		}
		return out, err
	})
}

func (in *Inputs) policy(n Name, row *pb.Row) error {
	return set(in.Policies, n, row, func(row *pb.Row) (*Policy, error) {
		out := &Policy{Name: n, Row: row}
		var err error
		if n.Kind == "BackendTLSPolicy" {
			out.TLS, err = spec[gateway.BackendTLSPolicySpec](row)
		} else {
			out.Traffic, err = spec[experimental.BackendTrafficPolicySpec](row)
		}
		return out, err
	})
}

func spec[S any](row *pb.Row) (*S, error) {
	o, err := objects.Decode[S](row)
	if err != nil {
		return nil, err
	}
	return &o.Spec, nil
}

// credential takes the row of a Secret or ConfigMap, or the one that says that there is none.
func (in *Inputs) credential(n Name, row *pb.Row, absent bool) error {
	rows := in.told[n]
	at := 0
	if absent {
		at = 1
	}
	rows[at] = row
	if rows == [2]*pb.Row{} {
		delete(in.told, n)
	} else {
		in.told[n] = rows
	}
	switch {
	case rows[0] != nil: // where both are told it has just come, or just gone: what is there counts
		return set(in.Credentials, n, rows[0], credential)
	case rows[1] != nil:
		in.Credentials.Set(n, Credential{Missing: true})
	default:
		in.Credentials.Delete(n)
	}
	return nil
}

// credential finds out what a Secret or ConfigMap is good for.
func credential(row *pb.Row) (out Credential, err error) {
	content, err := secrets.Decode(row)
	if err != nil {
		return out, err
	}
	if _, err := secrets.Certificate(content.Data); err != nil {
		out.Pair = err.Error()
	}
	if _, err := secrets.Trusted(content.Data); err != nil {
		out.Roots = err.Error()
	}
	return out, nil
}
