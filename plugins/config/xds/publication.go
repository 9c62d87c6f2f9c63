package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// publication is what was published of a server, and what is missing.
type publication struct {
	// ctx is Run's, by which the core is told that the server is away.
	ctx      context.Context
	config   Config
	out      sdk.Publisher
	books    map[string]*book
	faultSet kinds.FaultSet
	// heard are the types that the present connection has answered.
	heard map[string]bool
	// away says why there is no answer; empty: there is one, or the first try goes on. late: what
	// was not heard is missed.
	away string
	late bool
	// there: the present connection is made.
	there  bool
	synced bool
	// strange are types that were answered without being asked for, stand is how many services were
	// left out last.
	strange map[string]bool
	stand   int
}

func newPublication(ctx context.Context, c Config, out sdk.Publisher, checker *validation.Checker) *publication {
	p := &publication{
		ctx: ctx, config: c, out: out, faultSet: kinds.NewFaultSet(time.Now),
		books: make(map[string]*book, len(c.asked)), heard: map[string]bool{}, strange: map[string]bool{},
	}
	for _, a := range c.asked {
		p.books[a.url] = &book{
			reader: reader{a, c.host(), checker, c.Order()}, revision: c.Revision, synthetic: c.Synthetic,
			most: c.Limits.Resources, entries: map[string]*entry{},
		}
	}
	return p
}

// handle publishes what an answer changes, and says what to reply; ok: it is of a type that was
// asked for.
func (p *publication) handle(m *discovery.DiscoveryResponse) (r reply, ok bool, err error) {
	b := p.books[m.TypeUrl]
	if b == nil {
		if t := clip(m.TypeUrl); !p.strange[t] && len(p.strange) < mostStrange {
			p.strange[t] = true
			p.out.Log(sdk.Warn, "the server answers a type that was not asked for; it is left out", "type", t)
		}
		return r, false, nil
	}
	r = b.handle(m)
	p.late = p.late && len(p.heard) > 0
	p.heard[m.TypeUrl], p.away = true, ""
	if len(r.upserts)+len(r.deletes) > 0 {
		if err := p.out.Update(b.kind.Table, r.upserts, r.deletes); err != nil {
			return r, true, err
		}
	}
	if b.stand != p.stand && b.kind.Table == kinds.ServiceEntry {
		p.stand = b.stand
		p.out.Log(sdk.Info, "ServiceEntries without endpoints that stand for services of the server's registries are left out (synthetic)", "count", b.stand)
	}
	return r, true, p.sync(false)
}

// mostStrange are told.
const mostStrange = 10

// connecting says that another connection is made: it has answered nothing. lost: the one before
// had.
func (p *publication) connecting() (lost bool) {
	p.there = false
	if lost = len(p.heard) > 0; lost {
		p.heard, p.late = map[string]bool{}, false
	}
	return lost
}

// connected says that the connection is made.
func (p *publication) connected() { p.there = true }

// missed says that answers could have been in by now.
func (p *publication) missed() error {
	p.late = true
	return p.sync(true)
}

// lost says why a connection has ended, or was not made. Where it had answered, another one comes
// at once, so that there is nothing to show.
func (p *publication) lost(why string) error {
	if len(p.heard) > 0 {
		return nil
	}
	p.away = why
	return p.tell()
}

// sync shows what is wrong, and says that the first list is in once it is, or is not waited for;
// waited: as long as it may take.
func (p *publication) sync(waited bool) error {
	if err := p.tell(); err != nil || p.synced {
		return err
	}
	missing := p.missing(func(b *book) bool { return !b.answered })
	server := len(missing) < len(p.books)
	switch {
	case len(missing) == 0:
	case waited && p.config.WaitFor == waitForNothing, waited && p.config.WaitFor == waitForServer && server:
		p.out.Log(sdk.Warn,
			"the start goes on without what the server has not answered (waitFor); it is taken when it comes",
			"types", strings.Join(missing, ", "))
	default:
		return nil
	}
	p.synced = true
	return p.out.Synced()
}

// missing are the types of which something is true, in the order in which they are asked for.
func (p *publication) missing(is func(*book) bool) (urls []string) {
	for _, a := range p.config.asked {
		if is(p.books[a.url]) {
			urls = append(urls, a.url)
		}
	}
	return urls
}

// mostFaults are shown.
const mostFaults = 1000

// tell publishes faults, logs those that are new, and tells the core whether the server is away.
func (p *publication) tell() error {
	switch silent := p.silent(); {
	case silent != "":
		sdk.Lost(p.ctx, errors.New(silent))
	case len(p.heard) > 0 && (p.late || len(p.missing(func(b *book) bool { return b.answered && !p.heard[b.url] })) == 0):
		sdk.Found(p.ctx)
	}
	var all []kinds.Fault
	for _, a := range p.config.asked {
		all = append(all, p.books[a.url].wrong()...)
	}
	kinds.SortFaults(all)
	server := place(p.config.host(), "", "")
	if more := len(all) - mostFaults; more > 0 {
		all = append(all[:mostFaults:mostFaults], kinds.Fault{File: server, Message: fmt.Sprintf("%d more faults", more)})
	}
	c := p.faultSet.Show(slices.Concat(all, p.absent(server)))
	for _, f := range c.New {
		f.Log(p.out.Log)
	}
	if c.Healed {
		p.out.Log(sdk.Info, "nothing is wrong with the server's resources any more", "server", p.config.host())
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}

// silent says why there is no answer that should be there; empty: it has not been waited for long
// enough, or there is one.
func (p *publication) silent() string {
	if p.away == "" && p.late && len(p.heard) == 0 {
		if !p.there {
			return "the connection is not made yet"
		}
		return "it is connected, and says nothing"
	}
	return p.away
}

// absent are faults of a server that is away, and of types that it has not answered.
func (p *publication) absent(server string) (all []kinds.Fault) {
	if silent := p.silent(); silent != "" {
		f := kinds.Fault{File: server, Message: "the server does not answer: " + silent, Hint: "what is known stays, and it is tried again"}
		if !p.synced {
			f.Hint = p.held("it is tried again")
		}
		return []kinds.Fault{f}
	}
	if !p.late {
		return nil
	}
	for _, url := range p.missing(func(b *book) bool { return !p.heard[b.url] }) {
		b := p.books[url]
		f := kinds.Fault{
			File: b.place(""), Kind: b.kind.Name(), Severity: finding.Warning, Message: "the server has not answered " + url, Hint: "what is known of it stays",
		}
		if !b.answered {
			f.Hint = "`types` says what it is asked for"
			if !p.synced {
				f.Hint = p.held(f.Hint)
			}
		}
		all = append(all, f)
	}
	return all
}

// held adds to a hint what waits.
func (p *publication) held(hint string) string {
	if p.config.WaitFor == waitForNothing {
		return hint
	}
	return hint + "; the start waits for it (waitFor: " + p.config.WaitFor + ")"
}
