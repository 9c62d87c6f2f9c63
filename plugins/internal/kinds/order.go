package kinds

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// maxRank is how many namespaces can be ranked (Row.undated of the contract).
const maxRank = 1000

// Order is what a source that many may write to says of which object goes before another: nothing
// of what stands in the objects, but what the core saw first.
type Order struct{ ranks []string }

// Ordering is the part of a source's config that says so.
type Ordering struct {
	// Rank lists namespaces, those first whose objects go before others that came at the same time.
	Rank []string `json:"rank" doc:"Namespaces: of objects that compete and came at the same time, those of an earlier one count; all that are listed go before all others."`
	// Trust has the objects' own creationTimestamp count.
	Trust bool `json:"trustCreationTimestamp" doc:"Of objects that compete, the one with the earlier metadata.creationTimestamp counts, and of equals the first by name, as with an API server: only where one owner writes all of them."`
}

// Check reports what is wrong with it.
func (o Ordering) Check() error {
	if o.Trust && len(o.Rank) > 0 {
		return strict.Errorf("rank", "says nothing where trustCreationTimestamp is true; leave one of them out")
	}
	if len(o.Rank) > maxRank {
		return strict.Errorf("rank", "has %d namespaces; %d at most", len(o.Rank), maxRank)
	}
	for i, namespace := range o.Rank {
		switch {
		case len(namespace) > maxLabel || !label.MatchString(namespace):
			return strict.Errorf(strict.At("rank", i), "%q is no namespace's name", namespace)
		case slices.Index(o.Rank, namespace) < i:
			return strict.Errorf(strict.At("rank", i), "%s is there already", namespace)
		}
	}
	return nil
}

// Order is what a Reader takes; nil: what objects say of themselves counts.
func (o Ordering) Order() *Order {
	if o.Trust {
		return nil
	}
	return &Order{o.Rank}
}

// rank is a namespace's place among those that come at one time: 0 the last.
func (o *Order) rank(namespace string) int64 {
	if i := slices.Index(o.ranks, namespace); i >= 0 {
		return int64(i - len(o.ranks))
	}
	return 0
}
