// Package state holds the rows that a plugin reads: tables at one revision.
package state

import (
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Standard tables. Config kinds are tables too, named GROUP/KIND.
const (
	Services   = "services"
	Endpoints  = "endpoints"
	Workloads  = "workloads"
	Namespaces = "namespaces"
	Mesh       = "mesh"
	Networks   = "networks"
	// ClusterServices are what services are in clusters beside the one whose row of services
	// counts.
	ClusterServices = "clusterservices"
	// NetworkGateways are where networks are entered from others, beside what mesh settings and
	// services say: an endpoint each, of which network, cluster, address and port count.
	NetworkGateways = "networkgateways"
	// Faults is where config sources say what is wrong with what they read; docs/contract.md has
	// the form of its rows.
	Faults = "faults"
)

// Revision is (epoch, number): the epoch is a start of the core, the number grows with each commit.
type Revision struct {
	Epoch, Number uint64
}

// Name names a row.
type Name struct {
	Table, Key string
}

// State is a set of tables at one revision. It never changes.
type State struct {
	revision Revision
	tables   map[string]*Table
	remote   *remote
	// reads are noted, if it is there.
	reads recorder
}

// Change takes a plugin from Before to State. Before is nil when the whole state is new.
type Change struct {
	Before, State *State
	// Keys that were upserted or deleted, by table, sorted. Where Before is nil: all keys.
	Keys map[string][]string
}

// Revision returns the revision that the tables are at.
func (s *State) Revision() Revision { return s.revision }

// Table returns a table; an empty one where the plugin doesn't read it or it has no rows.
func (s *State) Table(name string) *Table {
	t := s.table(name)
	if s.reads == nil {
		return t
	}
	recorded := *t
	recorded.reads, recorded.name = s.reads, name
	return &recorded
}

func (s *State) table(name string) *Table {
	if s.remote != nil {
		return s.remote.table(name)
	}
	if t := s.tables[name]; t != nil {
		return t
	}
	return &Table{}
}

// Tables returns the names of the tables that there are, in no order; none of a remote state.
func (s *State) Tables() []string { return slices.Collect(maps.Keys(s.tables)) }

// Row returns a row, nil where there is none. Rows are shared: read only.
func (s *State) Row(table, key string) *pb.Row { return s.Table(table).Get(key) }
