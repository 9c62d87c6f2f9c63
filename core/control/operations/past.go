package operations

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Past is what was served, and who is served it again.
type Past struct {
	c       *Core
	history *history.History
	// changing: one pin changes at a time, and waits for the disk with it. Who only looks doesn't
	// take it.
	changing sync.Mutex
}

// NewPast returns that of a core, with the pins that its history has kept.
func NewPast(c *Core) (*Past, error) {
	p := &Past{c: c, history: c.History}
	pins, images := p.history.Pins()
	for i, pin := range pins {
		if err := p.show(pin, images[i]); err != nil {
			return nil, fmt.Errorf("pin of revision %d: %w", pin.Revision, err)
		}
		c.Log.Warn("proxies are still pinned: they are served what they were at a revision", "revision",
			pin.Revision, "proxies", pinnedWords(pin.Proxies), "since", pin.Since)
	}
	return p, nil
}

func pinnedWords(proxies string) string { return cmp.Or(proxies, "all") }

// show has connections see what a pin has.
func (p *Past) show(pin history.Pin, im *history.Image) error {
	s, err := manifest.ParseSelector(pin.Proxies)
	if err != nil {
		return err
	}
	return p.c.Do(func() error {
		p.c.Middle.Serving.Screen.Pin(&serving.Pinned{Pin: pin, Image: im, Selects: s.Matches})
		return nil
	})
}

// Pin has the proxies that are selected served what they were served at a revision, until Unpin; in
// the place of another pin of the same proxies. The error says what the selector lacks, or which
// revisions there are.
func (p *Past) Pin(number uint64, proxies string, endpoints bool) (report.Pin, error) {
	if _, err := manifest.ParseSelector(proxies); err != nil {
		return report.Pin{}, err
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	pin := history.Pin{Revision: number, Proxies: proxies, Endpoints: endpoints, Since: time.Now().UTC()}
	im, note, err := p.history.Pin(pin)
	if err != nil {
		return report.Pin{}, err
	}
	if err := p.show(pin, im); err != nil {
		return report.Pin{}, err
	}
	out := p.of(proxies)
	out.Note = cmp.Or(out.Note, note)
	p.c.Log.Warn("proxies are pinned: they are served what they were at a revision", "revision", number, "proxies",
		pinnedWords(proxies), "endpoints", endpoints, "connected", len(out.Pinned), "note", note)
	return out, nil
}

// of is the pin of some proxies, as it is shown.
func (p *Past) of(proxies string) report.Pin {
	all := p.Pins()
	if i := slices.IndexFunc(all, func(x report.Pin) bool { return x.Proxies == proxies }); i >= 0 {
		return all[i]
	}
	return report.Pin{}
}

// ErrNoPin says that there is no such pin.
var ErrNoPin = errors.New("no proxies are pinned")

// Unpin takes away the pin of the proxies that a selector names as the pin does, or all pins, and
// returns those.
func (p *Past) Unpin(proxies string, all bool) ([]report.Pin, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	var gone []report.Pin
	var there []string
	for _, x := range p.Pins() {
		if there = append(there, fmt.Sprintf("%q", x.Proxies)); all || x.Proxies == proxies {
			gone = append(gone, x)
		}
	}
	switch {
	case len(there) == 0:
		return nil, ErrNoPin
	case len(gone) == 0:
		return nil, fmt.Errorf("no pin is of the proxies %q; there are pins of %s", proxies, strings.Join(there, ", "))
	}
	var names []string
	for _, x := range gone {
		_ = p.c.Do(func() error { p.c.Middle.Serving.Screen.Unpin(x.Proxies); return nil })
		names = append(names, x.Proxies)
	}
	note := p.history.Unpin(names...)
	for i, x := range gone {
		gone[i].Note = note
		p.c.Log.Warn("proxies are not pinned any more: they are served what is live", "revision", x.Revision, "proxies", pinnedWords(x.Proxies), "note", note)
	}
	return gone, nil
}

// Pins are the pins, older ones first, with the connected proxies that they serve.
func (p *Past) Pins() []report.Pin {
	note := p.history.Doubt()
	p.c.Lock()
	defer p.c.Unlock()
	out := []report.Pin{}
	at := map[*serving.Pinned]int{}
	pins := p.c.Middle.Serving.Pins
	for _, x := range pins.All() {
		at[x] = len(out)
		out = append(out,
			report.Pin{Revision: x.Revision, Proxies: x.Proxies, Endpoints: x.Endpoints, Since: x.Since, Note: note, Pinned: []report.PinnedProxy{}})
	}
	if len(out) == 0 {
		return out
	}
	for _, conn := range p.c.Middle.State.Connections.Sorted() {
		x := pins.Of(conn)
		if x == nil || x == pins.Stage() {
			continue
		}
		out[at[x]].Pinned = append(out[at[x]].Pinned, pinned(conn, pins.Types(conn)))
	}
	return out
}

func pinned(conn *state.Connection, by map[string]history.By) report.PinnedProxy {
	p := report.PinnedProxy{Node: conn.Peer.Node.GetId(), Connection: conn.ID, Types: map[string]string{}}
	for url, how := range by {
		p.Types[url] = string(how)
	}
	return p
}

// History is what is kept of the last revisions, with what else is remembered of pushes but for
// those of endpoints alone.
func (p *Past) History() report.History {
	out := p.history.Summary()
	p.c.Lock()
	pushes := p.c.Middle.State.Journal.After(0)
	p.c.Unlock()
	known := map[uint64]int{}
	for i, k := range out.Revisions {
		known[k.Push.Revision] = i
	}
	for _, x := range pushes {
		i, kept := known[x.Revision]
		switch {
		case kept:
			out.Revisions[i].Push = x
		case x.Kind != revision.Endpoints:
			out.Revisions = append(out.Revisions, report.Kept{Push: x, Unchanged: true})
		}
	}
	slices.SortFunc(out.Revisions, func(a, b report.Kept) int { return cmp.Compare(a.Push.Revision, b.Push.Revision) })
	return out
}

// Diff says what proxies had at one revision and not at another; node: one of them alone.
func (p *Past) Diff(from, to uint64, node string) (report.Difference, error) {
	return p.history.Diff(from, to, node)
}
