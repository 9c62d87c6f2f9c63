package plugintest

import (
	"fmt"
	"strconv"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// snapshot is all that a plugin has to say, by what it is about: rows, resources, patched resources
// or verdicts.
func (k *kit) snapshot(h *Harness) map[string]string {
	r := h.Ready()
	switch {
	case r.Kind.Generates():
		k.feed(h, 3)
		return k.resources(h)
	case r.Derives:
		k.feed(h, 3)
		return k.published(h)
	case r.Kind.Patches():
		return k.patched(h)
	case r.Kind.Authenticates():
		return k.verdicts(h)
	case r.Kind.Acts():
		h.ping(h.nextID() + 1000)
		return nil
	}
	h.WaitSynced()
	return k.published(h)
}

// feed takes a reader to a state with a number of endpoints and waits for Done.
func (k *kit) feed(h *Harness, endpoints int) { h.Commit(k.world(h.Ready(), endpoints)...) }

// published is the plugin's rows, and checks them.
func (k *kit) published(h *Harness) map[string]string {
	found := map[string]string{}
	for _, table := range h.Ready().Publishes {
		for key, row := range h.Rows(table) {
			found[table+" "+key] = string(row.AppendTo(nil))
			if err := checkRow(table, row); err != nil {
				h.failed("table %s: row %q: %v", table, key, err)
			}
		}
	}
	return found
}

// checkRow checks keys of the standard tables against what they stand for.
func checkRow(table string, row *sdk.Row) error {
	var want string
	switch table {
	case state.Services:
		s, err := sdk.ServiceOf(row)
		if err != nil {
			return err
		}
		want = sdk.ServiceKey(s.Namespace, s.Host)
	case state.Endpoints:
		e, err := sdk.EndpointOf(row)
		if err != nil {
			return err
		}
		want = sdk.EndpointKey(e)
		if len(row.Key) > len(want) && row.Key[:len(want)+1] == want+"#" {
			return nil
		}
	case state.Workloads:
		w, err := sdk.WorkloadOf(row)
		if err != nil {
			return err
		}
		want = w.Namespace + "/" + w.Name
	default:
		return nil
	}
	if row.Key != want {
		return fmt.Errorf("the key of what its payload says is %q", want)
	}
	return nil
}

// world is a state with a number of endpoints, a service for each ten, in the tables that the
// plugin reads.
func (k *kit) world(r *pb.Ready, endpoints int) []Rows {
	made := map[string][]*sdk.Row{state.Namespaces: {sdk.NamespaceRow(&pb.Namespace{Name: "test"})}}
	for i := range endpoints {
		host := "service-" + strconv.Itoa(i/10) + ".test.svc.cluster.local"
		if i%10 == 0 {
			made[state.Services] = append(made[state.Services], sdk.ServiceRow(&sdk.Service{
				Host: host, Namespace: "test", Name: "service-" + strconv.Itoa(i/10), Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}},
			}))
		}
		made[state.Endpoints] = append(made[state.Endpoints], sdk.EndpointRow(&sdk.Endpoint{
			Host: host, Namespace: "test", PortName: "http", ServicePort: 80, Address: fmt.Sprintf("127.%d.%d.%d", i>>16&0xff, i>>8&0xff, i&0xff), Port: 8080,
		}))
	}
	return k.only(r, made)
}

// only leaves the tables that the plugin reads, with the suite's own rows.
func (k *kit) only(r *pb.Ready, made map[string][]*sdk.Row) (rows []Rows) {
	for _, read := range r.Reads {
		rows = append(rows, Rows{Table: read.Table, Upserts: append(made[read.Table], k.Rows[read.Table]...)})
	}
	return rows
}
