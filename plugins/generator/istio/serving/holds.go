package serving

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// holds knows which resources Envoy would refuse as they would be made now. A function that fails
// keeps its last good result by itself; where the function is another one than before, because
// other rules or patches count, what was told before stays as long as it is so.
type holds struct {
	// failures are some of the functions that failed, and more how many others did: of one mistake
	// in the mesh's settings there may be thousands, and they are looked at after each wave.
	failures []incr.Failure
	more     int
	refused  map[resourceName]bool
	// runs is how many functions had run when it looked.
	runs int
	// holding are those that hold something, by the order in which they began to.
	holding map[holder]int
	began   int
}

type resourceName struct{ typeURL, name string }

// holder has told resources that stay while they are refused.
type holder interface {
	// review tells what has become of them.
	review(out sdk.Output)
}

func newHolds() *holds {
	return &holds{refused: map[resourceName]bool{}, holding: map[holder]int{}}
}

// notice looks at what failed, after a wave.
func (h *holds) notice(g *incr.Graph) {
	if runs := g.Runs(); runs != h.runs || len(h.failures) > 0 {
		failures, others := g.FirstFailures(maxStanding)
		h.runs, h.failures, h.more = runs, failures, len(others)
		clear(h.refused)
		for _, f := range failures {
			h.refuse(f.Err)
		}
		for _, err := range others {
			h.refuse(err)
		}
	}
}

// refuse notes a resource that Envoy would refuse, if that is why a function failed.
func (h *holds) refuse(err error) {
	if r := refusal(err); r != nil {
		h.refused[resourceName{encode.URL(r.Type), r.Name}] = true
	}
}

// names are the refused resources of a type, sorted.
func (h *holds) names(typeURL string) []string {
	var out []string
	for r := range h.refused {
		if r.typeURL == typeURL {
			out = append(out, r.name)
		}
	}
	slices.Sort(out)
	return out
}

// hold notes whether a holder holds anything.
func (h *holds) hold(w holder, anything bool) {
	if !anything {
		delete(h.holding, w)
	} else if h.holding[w] == 0 {
		h.began++
		h.holding[w] = h.began
	}
}

func (h *holds) review(out sdk.Output) {
	for _, w := range slices.SortedFunc(maps.Keys(h.holding), func(a, b holder) int { return h.holding[a] - h.holding[b] }) {
		w.review(out)
	}
}
