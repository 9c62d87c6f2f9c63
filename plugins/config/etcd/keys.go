package etcd

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// id names an object: its table, GROUP/KIND, its namespace and its name.
type id struct{ table, namespace, name string }

// idOf reads a key (without the prefix): GROUP/KIND/NAMESPACE/NAME, or GROUP/KIND/NAME of a kind
// whose objects are in no namespace.
func idOf(key string) (id, bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 3 || slices.Contains(parts[2:], "") {
		return id{}, false
	}
	switch i := (id{table: parts[0] + "/" + parts[1], name: parts[len(parts)-1]}); {
	case i.cluster():
		return i, len(parts) == 3
	default:
		i.namespace = parts[2]
		return i, len(parts) == 4
	}
}

func (i id) key() string {
	if i.cluster() {
		return i.table + "/" + i.name
	}
	return i.table + "/" + i.namespace + "/" + i.name
}

// kind is the object's, without the group.
func (i id) kind() string { _, kind, _ := strings.Cut(i.table, "/"); return kind }

func (i id) group() string { group, _, _ := strings.Cut(i.table, "/"); return group }

// cluster reports whether objects of the kind are in no namespace.
func (i id) cluster() bool { k, ok := kinds.Other(i.table); return ok && k.Cluster }

// tables are those whose objects are rows: Istio's kinds, those of the Gateway API, and Ingresses.
func tables() []string {
	return slices.Concat(kinds.Tables(), kinds.OtherTables(), []string{secrets.Grants})
}

// served reports whether objects of a table are rows: Leases are written only.
func served(table string) bool { return slices.Contains(tables(), table) }

// written are the tables that writes are taken of.
func written() []string { return append(tables(), lead.Table) }
