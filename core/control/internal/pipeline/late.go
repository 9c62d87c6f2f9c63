package pipeline

import (
	"time"
)

// Hold looks after the revision in the making: endpoints may overtake it, and it doesn't wait for
// ever.
func (p *Pipeline) Hold(now time.Time, at func(time.Time)) {
	f := p.state.Course.Flight
	until := f.Until()
	switch {
	case until.IsZero():
		return
	case !until.After(now):
		if p.giveUp(now); p.state.Course.Flight == f {
			at(f.Until())
		}
		return
	}
	at(until)
	overtaken := f.Overtaken(p.timing.EndpointPatience)
	switch endpoints, _ := p.state.Env.Pending.Waits(); {
	case !endpoints || !p.state.Course.Started || p.timing.DebounceEndpoints || overtaken.IsZero():
	case overtaken.After(now):
		at(overtaken)
	case p.Paced(now, at):
		p.overtake()
	}
}

// giveUp serves the revision without the plugins that are late.
func (p *Pipeline) giveUp(now time.Time) {
	f := p.state.Course.Flight
	var asked []string
	for s := range p.state.Roster.Sessions() {
		if s.Maker.Asked.GiveUp() {
			asked = append(asked, s.Name())
		}
	}
	for _, name := range f.GiveUp(asked, now) {
		p.noteLate(name, now)
	}
	p.state.Log.Warn("revision is partial: plugins were not done in time; what they said last stays", "revision",
		f.Number, "plugins", f.Late(), "waited", f.Took(now))
	p.Advance(now)
}

// noteLate notes that the revision goes out without a plugin.
func (p *Pipeline) noteLate(name string, now time.Time) {
	p.state.Metrics.Partial(name)
	if k := p.state.Roster.Plugins[name]; k != nil {
		k.GoesWithout(now)
	}
}
