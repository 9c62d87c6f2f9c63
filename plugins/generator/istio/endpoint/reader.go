package endpoint

import (
	"fmt"
	"maps"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Reader reads rows of the table `endpoints`, each once, whoever asks for it. Its methods may be
// called from any goroutine. What it returns must not be changed.
type Reader struct {
	mu   sync.Mutex
	read map[string]reading
	// latest were read last, oldest first: the versions of a service often take turns.
	latest [4]*Endpoint
}

// reading is what a row was read as.
type reading struct {
	row      *pb.Row
	endpoint *Endpoint
}

// NewReader returns one that has read nothing.
func NewReader() *Reader { return &Reader{read: map[string]reading{}} }

// Parse reads a row.
func (r *Reader) Parse(row *pb.Row) (*Endpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.read[row.Key]; have.row == row {
		return have.endpoint, nil
	}
	e := &Endpoint{Key: row.Key}
	if err := e.Unmarshal(row.Payload); err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", row.Key, err)
	}
	for _, other := range r.latest {
		if other != nil {
			e.share(other)
		}
	}
	copy(r.latest[:], r.latest[1:])
	r.latest[len(r.latest)-1] = e
	r.read[row.Key] = reading{row, e}
	return e, nil
}

// Forget drops what a row was read as.
func (r *Reader) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, key)
}

// share takes from another endpoint what both have: rows come in the order of their keys, so that
// most of a service's differ in addresses alone.
func (e *Endpoint) share(other *Endpoint) {
	for _, s := range []struct{ mine, other *string }{
		{&e.Host, &other.Host}, {&e.Namespace, &other.Namespace}, {&e.PortName, &other.PortName}, {&e.Network, &other.Network},
		{&e.Locality, &other.Locality}, {&e.ServiceAccount, &other.ServiceAccount}, {&e.TlsMode, &other.TlsMode}, {&e.Cluster, &other.Cluster},
		{&e.Workload, &other.Workload}, {&e.Node, &other.Node}, {&e.Subdomain, &other.Subdomain}, {&e.WorkloadNamespace, &other.WorkloadNamespace},
	} {
		if *s.mine == *s.other {
			*s.mine = *s.other
		}
	}
	if maps.Equal(e.Labels, other.Labels) {
		e.Labels = other.Labels
	}
}
