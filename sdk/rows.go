package sdk

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ServiceRow returns the row of table services for a service; the key is NAMESPACE/HOST.
func ServiceRow(s *Service) *Row {
	return &Row{Key: ServiceKey(s.Namespace, s.Host), Payload: s.AppendTo(nil)}
}

// ServiceKey returns the key of a service.
func ServiceKey(namespace, host string) string { return namespace + "/" + host }

// EndpointRow returns the row of table endpoints for an endpoint; the key is
// NAMESPACE/HOST/PORT-NAME/ADDRESS:PORT. Where one address serves several times use EndpointRows.
func EndpointRow(e *Endpoint) *Row {
	return &Row{Key: EndpointKey(e), Payload: e.AppendTo(nil)}
}

// EndpointKey returns the key of an endpoint.
func EndpointKey(e *Endpoint) string {
	address := e.Address
	if strings.Contains(address, ":") {
		address = "[" + address + "]" // As net.JoinHostPort does; package net would double a WASM plugin.
	}
	return e.Namespace + "/" + e.Host + "/" + e.PortName + "/" + address + ":" + strconv.Itoa(int(e.Port))
}

// EndpointRows returns the rows of endpoints; those with equal keys are numbered: KEY, KEY#1,
// KEY#2, …
func EndpointRows(endpoints ...*Endpoint) []*Row {
	rows := make([]*Row, len(endpoints))
	seen := make(map[string]int, len(endpoints))
	for i, e := range endpoints {
		rows[i] = EndpointRow(e)
		key := rows[i].Key
		if n := seen[key]; n > 0 {
			rows[i].Key = key + "#" + strconv.Itoa(n)
		}
		seen[key]++
	}
	return rows
}

// WorkloadRow returns the row of table workloads for a workload; the key is NAMESPACE/NAME.
func WorkloadRow(w *Workload) *Row {
	return &Row{Key: w.Namespace + "/" + w.Name, Payload: w.AppendTo(nil)}
}

// NamespaceRow returns the row of table namespaces for a namespace; the key is its name.
func NamespaceRow(n *pb.Namespace) *Row {
	return &Row{Key: n.Name, Payload: n.AppendTo(nil)}
}

// ServiceOf, EndpointOf and WorkloadOf decode a row of the standard tables. To decode each row
// once, however often it is read, use state.Decoder.
func ServiceOf(r *Row) (*Service, error) { return decode(r, new(Service)) }

// EndpointOf returns the endpoint that a row of Endpoints has.
func EndpointOf(r *Row) (*Endpoint, error) { return decode(r, new(Endpoint)) }

// WorkloadOf returns the workload that a row of Workloads has.
func WorkloadOf(r *Row) (*Workload, error) { return decode(r, new(Workload)) }

func decode[T interface{ Unmarshal([]byte) error }](r *Row, into T) (T, error) {
	if err := into.Unmarshal(r.Payload); err != nil {
		return into, text.Error("row ", r.Key, ": ", err)
	}
	return into, nil
}
