package environment

import "iter"

// Why a row is hidden.
type Why string

// Reasons, by what in plugins.yaml they are of.
const (
	// Later: a plugin that stands earlier has the same key.
	Later Why = "order"
	// Lower: a plugin of higher priority has the same key, or the service that the row belongs to
	// and endpoints of it.
	Lower Why = "priority"
	// Away: the plugin's source is away for longer than onLoss allows.
	Away Why = "onLoss"
)

// Hidden is a row of a shard that is not served.
type Hidden struct {
	Name
	Why Why
	// By is the shard whose rows are served instead; nil: none.
	By *Shard
}

// Hidden is the number of rows that aren't served because of other rows, or because their source is
// away.
func (p *Precedence) Hidden() int { return p.rows }

// HiddenRows is how many rows of a shard are not served.
func (p *Precedence) HiddenRows(s *Shard) int { return len(p.hidden[s]) }

// HiddenOf yields the rows of a shard that are not served.
func (p *Precedence) HiddenOf(s *Shard) iter.Seq[Hidden] {
	return func(yield func(Hidden) bool) {
		for n := range p.hidden[s] {
			if !yield(p.why(s, n)) {
				return
			}
		}
	}
}

func (p *Precedence) why(s *Shard, n Name) Hidden {
	h := Hidden{Name: n, Why: Away}
	if s.aside {
		return h
	}
	rows, rank := p.tables[n.Table].rows[n.Key], p.rankOf(n, false)
	if i := pick(rows, rank, false); i >= 0 {
		h.By = rows[i].shard
	} else {
		h.By = p.owner(ServiceOf(n.Key), false)
	}
	if h.Why = Later; h.By != nil && h.By.Priority > s.Priority {
		h.Why = Lower
	}
	return h
}
