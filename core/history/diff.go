package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Diff compares what proxies had at two revisions: of one node or, without one, of all that there
// are at both. The error says what is not kept.
func (h *History) Diff(from, to uint64, node string) (report.Difference, error) {
	if h == nil {
		return report.Difference{}, errOff
	}
	ctx, cancel := waiting()
	defer cancel()
	h.take()
	a, err := saves(h).at(ctx, from)
	if err != nil {
		return report.Difference{}, err
	}
	b, err := saves(h).at(ctx, to)
	if err != nil {
		return report.Difference{}, err
	}
	d := report.Difference{From: from, To: to, Resources: []report.DifferentBody{}}
	before, after := a.Nodes(), b.Nodes()
	if node != "" {
		at := func(all []string) []string {
			return slices.DeleteFunc(all, func(n string) bool { return n != node })
		}
		if before, after = at(before), at(after); len(before)+len(after) == 0 {
			return d, fmt.Errorf("proxy %q was there at neither revision", node)
		}
	}
	c := comparison{a: a, b: b, pairs: map[pair][]int{}, found: map[different]int{}}
	for _, n := range after {
		if _, both := slices.BinarySearch(before, n); both {
			d.Compared++
			c.node(n)
		} else {
			d.Came = append(d.Came, n)
		}
	}
	for _, n := range before {
		if _, both := slices.BinarySearch(after, n); !both {
			d.Left = append(d.Left, n)
		}
	}
	slices.SortFunc(c.all, func(a, b report.DifferentBody) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	d.Resources = append(d.Resources, c.all...)
	return d, nil
}

// comparison finds each difference once, however many nodes have it.
type comparison struct {
	a, b  *Image
	pairs map[pair][]int
	found map[different]int
	all   []report.DifferentBody
}

type pair struct{ a, b *view.Snapshot }

type different struct{ typeURL, name, before, after string }

func (c *comparison) node(node string) {
	types := slices.Concat(c.a.Types(node), c.b.Types(node))
	slices.Sort(types)
	for _, url := range slices.Compact(types) {
		k := Key{node, url}
		p := pair{c.a.Snapshot(k), c.b.Snapshot(k)}
		differ, known := c.pairs[p]
		if !known {
			differ = c.compare(url, p)
			c.pairs[p] = differ
		}
		for _, i := range differ {
			c.all[i].Proxies = append(c.all[i].Proxies, node)
		}
	}
}

func (c *comparison) compare(url string, p pair) (differ []int) {
	view.Differ(view.NewSet(p.a.Versions()), view.NewSet(p.b.Versions()), func(name string, before, after *view.Body) {
		d := report.DifferentBody{Type: url, Name: name}
		if before != nil {
			d.Before, d.BeforeValue = before.Version(), before.Value()
		}
		if after != nil {
			d.After, d.AfterValue = after.Version(), after.Value()
		}
		d.Withheld = before != nil && !before.Exists() || after != nil && !after.Exists()
		at := different{url, name, d.Before, d.After}
		i, known := c.found[at]
		if !known {
			i = len(c.all)
			c.found[at], c.all = i, append(c.all, d)
		}
		differ = append(differ, i)
	})
	return differ
}
