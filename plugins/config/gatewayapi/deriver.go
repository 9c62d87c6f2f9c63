package gatewayapi

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/derived"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func newDeriver(c Config) *derived.Deriver {
	g := incr.New()
	in := derive.NewInputs(g)
	of := derive.New(g, in, derive.Config{
		Domain: c.Domain, ClusterSetHosts: c.ClusterSet, AllCredentials: c.AllSecrets,
		Controller: gateway.GatewayController(c.Controller), Statuses: c.Statuses, Beyond: c.Beyond,
	})
	said := complaints{}
	d := &derived.Deriver{Plugin: "config/gatewayapi", Graph: g, Tables: derive.Tables(), Load: in.Load, Tell: func() []kinds.Fault {
		for _, root := range of.Complaints {
			said.change(root)
		}
		return said.faults()
	}}
	derived.Add(d, kinds.Gateway, of.Gateways, func(key string, g *derive.Gateway) (*sdk.Row, error) {
		spec := g.Spec
		if g.Deployed != "" {
			spec = proto.CloneOf(spec)
			spec.Selector = map[string]string{istio.GatewayName: g.Deployed}
		}
		return derived.Row(key, spec, g.Annotations, g.From)
	})
	derived.Add(d, kinds.VirtualService, of.VirtualServices, func(key string, v *derive.VirtualService) (*sdk.Row, error) {
		return derived.Row(key, v.Spec, v.Annotations, v.From[0].Row)
	})
	derived.Add(d, kinds.DestinationRule, of.DestinationRules, func(key string, r *derive.DestinationRule) (*sdk.Row, error) {
		return derived.Row(key, r.Spec, r.Annotations, r.From[0])
	})
	for _, root := range of.Statuses {
		derived.AddBy(d, gatewayapi.Statuses, root, statusKey, statusRow)
	}
	for i, root := range of.Asked {
		by := askers[i]
		derived.AddBy(d, secrets.Named, root, func(n derive.Name) string { return by + "/" + objectOf(n).AbsenceKey() }, requestRow(by))
	}
	return d
}

// askers are the kinds that Secrets and ConfigMaps are asked for, as derive.Derived.Asked has them.
var askers = []string{"Gateway", "BackendTLSPolicy"}

func objectOf(n derive.Name) secrets.Object {
	return secrets.Object{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}
}

// requestRow makes rows that ask for what objects of a kind name. No account asks: who wrote the
// object has named it, and is told no more than whether it can be used.
func requestRow(by string) func(string, bool) (*sdk.Row, error) {
	return func(key string, _ bool) (*sdk.Row, error) {
		object := strings.SplitN(strings.TrimPrefix(key, by+"/"), "/", 3)
		of := secrets.Object{Kind: object[0], Namespace: object[1], Name: object[2]}
		return &sdk.Row{Key: key, Payload: secrets.Request{Objects: []secrets.Object{of}}.Encode()}, nil
	}
}

// statusKey is the key of what is to be said of an object.
func statusKey(n derive.Name) string {
	if n.Namespace == "" {
		return gatewayapi.StatusKey(n.Table(), n.Name)
	}
	return gatewayapi.StatusKey(n.Table(), n.Key())
}

// statusRow is the row of what is to be said of an object; nil: it is in no API server.
func statusRow(key string, j *derive.Judged) (*sdk.Row, error) {
	if _, there := gatewayapi.Generation(j.Row); !there {
		return nil, nil
	}
	return j.Judged.Row(key, j.Row)
}

// complaints are what is wrong with objects.
type complaints map[derive.Name]*derive.Complaint

// change takes what the last wave has changed.
func (c complaints) change(root *incr.SetRoot[derive.Name, *derive.Complaint]) {
	upserts, removes := root.Delta()
	for _, n := range removes {
		delete(c, n)
	}
	for _, i := range upserts {
		c[i.Key] = i.Value
	}
}

// faults are complaints as they are shown: each object is served as far as it is right.
func (c complaints) faults() (all []kinds.Fault) {
	for _, n := range slices.SortedFunc(maps.Keys(c), derive.Name.Compare) {
		k := c[n]
		file, line, column := derived.Place(k.Row.Source)
		for _, text := range k.Text {
			all = append(all, kinds.Fault{
				File: file, Line: line, Column: column, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Severity: finding.Warning, Message: text,
			})
		}
	}
	return all
}
