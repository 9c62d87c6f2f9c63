package etcd

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// id names an object: its table, GROUP/KIND, its namespace and its name.
type id struct{ table, namespace, name string }

// idOf reads a key (without the prefix), GROUP/KIND/NAMESPACE/NAME.
func idOf(key string) (id, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[2] == "" || parts[3] == "" {
		return id{}, false
	}
	return id{parts[0] + "/" + parts[1], parts[2], parts[3]}, true
}

func (i id) key() string { return i.table + "/" + i.namespace + "/" + i.name }

// kind is the object's, without the group.
func (i id) kind() string { _, kind, _ := strings.Cut(i.table, "/"); return kind }

func (i id) group() string { group, _, _ := strings.Cut(i.table, "/"); return group }

// served reports whether objects of a table are rows: Leases are written only.
func served(table string) bool { _, ok := kinds.Lookup(table); return ok }

// written are the tables that writes are taken of.
func written() []string { return append(kinds.Tables(), lead.Table) }
