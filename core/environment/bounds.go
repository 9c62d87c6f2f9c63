package environment

import (
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Bounds say how much the rows of one namespace may cost: those whose keys begin with NAMESPACE/,
// derived ones too. Other rows have no bound.
type Bounds struct {
	// Bytes is how many bytes of memory they may take of this process and of plugins that make
	// something of them, as Cost estimates; 0: no bound.
	Bytes int64
	// Policies are tables whose rows forbid something: without one of them more would be allowed.
	// They have room of their own, which no other row of the namespace can take.
	Policies []string
	// Free are namespaces without a bound.
	Free []string
	// Instead returns what is served of a namespace, of one of Policies' tables, while a policy of
	// it is refused. It must forbid at least what any policy could. nil: nothing is.
	Instead func(namespace string) (table string, row *pb.Row)
}

// Of the bytes of a namespace, policies may take a quarter, what waits until there is room an
// eighth, and all other rows the rest.
func (b Bounds) most(policies bool) int64 {
	if policies {
		return b.Bytes / 4
	}
	return b.Bytes - b.Bytes/4 - b.Bytes/8
}

// waits is what the rows of a namespace that are refused may take, of policies or of others.
func (b Bounds) waits() int64 { return b.Bytes / 16 }

// perRow, perInstance (an endpoint or a workload), and perByte are what a row costs;
// docs/reliability.md says how that was measured.
const (
	perRow      = 4 << 10
	perInstance = 2 << 10
	perByte     = 8
)

// Cost is how many bytes of memory a row of a table is estimated to take of the core and of the
// plugins that read it, what they make of it included. No row costs nothing.
func Cost(table string, r *pb.Row) int64 {
	switch {
	case r == nil:
		return 0
	case table == Endpoints || table == Workloads:
		return perInstance + perByte*size(r)
	default:
		return perRow + perByte*size(r)
	}
}

// size is how many bytes a row says.
func size(r *pb.Row) int64 {
	n := len(r.Key) + len(r.Source) + len(r.Payload)
	for _, of := range []map[string]string{r.Labels, r.Annotations} {
		for k, v := range of {
			n += len(k) + len(v)
		}
	}
	return int64(n)
}

// waiting is what a row that waits takes: itself, and what there is around it.
func waiting(r *pb.Row) int64 {
	const around = 512
	return around + size(r)
}

// NamespaceOf returns the namespace that a row's key begins with: NAMESPACE/…; "": none.
func NamespaceOf(key string) string {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return namespace
}
