package analysis

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// StatusProblem is the code of what the status of an object of the Gateway API says where it is
// served.
const StatusProblem = "COX3015"

// objectRow is an object of the Gateway API, or one that such objects name, as a row of its table.
type objectRow struct {
	table string
	row   *pb.Row
}

// derivedOf reports whether what is derived of objects of the Gateway API depends on a table.
func derivedOf(table string) bool {
	_, ok := gatewayapi.Lookup(table)
	return ok || table == secrets.Grants || table == kinds.ServiceEntry
}

// statuses tells of objects of the Gateway API what their statuses say where they are served: a
// backend that is not there, a listener that conflicts, a reference that no grant allows. Secrets
// and ConfigMaps are taken for right: other checks tell of them.
func statuses(w *world) {
	at := map[derive.Name]*Resource{}
	for _, r := range w.resources {
		if _, ok := gatewayapi.Lookup(r.Group + "/" + r.Kind); ok {
			at[derive.Name{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}] = r
		}
	}
	if len(at) == 0 || len(w.rows) == 0 {
		return
	}
	g := incr.New()
	in := derive.NewInputs(g)
	of := derive.New(g, in, derive.Config{Domain: domain, Beyond: true})
	for _, r := range w.rows {
		_ = in.Load(r.table, r.row.Key, r.row) // what can't be read is told by who reads it
	}
	w.loadServices(in)
	g.Wave()
	for _, root := range of.Complaints {
		upserts, _ := root.Delta()
		for _, i := range upserts {
			for _, text := range i.Value.Text {
				if r := at[i.Key]; r != nil {
					w.reportOnce(r, finding.Warnf(StatusProblem, "", "%s", text))
				}
			}
		}
	}
}

// loadServices gives the services that are known, but for those of ServiceEntries, and namespaces.
func (w *world) loadServices(in *derive.Inputs) {
	for _, list := range w.services {
		for _, s := range list {
			of := &pb.Service{Host: s.Host, Namespace: s.Namespace, Name: strings.SplitN(s.Host, ".", 2)[0]}
			for _, port := range s.Ports {
				of.Ports = append(of.Ports, &pb.Port{Number: port})
			}
			for _, port := range s.Datagrams {
				of.Ports = append(of.Ports, &pb.Port{Number: port, Protocol: udp})
			}
			row := sdk.ServiceRow(of)
			_ = in.Load(state.Services, row.Key, row)
		}
	}
	for name, n := range w.namespaces {
		row := sdk.NamespaceRow(&pb.Namespace{Name: name, Labels: n.Labels})
		_ = in.Load(state.Namespaces, name, row)
	}
}
