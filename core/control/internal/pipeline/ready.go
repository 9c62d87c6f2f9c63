package pipeline

import (
	"fmt"
	"strings"
)

// NotReady says why new streams are not taken.
func (p *Pipeline) NotReady() []string {
	if p.state.Course.Closed {
		return []string{"it is stopping"}
	}
	if !p.state.Course.Started {
		reasons := p.Unready()
		if len(reasons) == 0 {
			reasons = []string{"the first revision is being made" + p.waitingFor()}
		}
		return reasons
	}
	var reasons []string
	for _, k := range p.state.Roster.Sorted() {
		if k.Expected.Blocks && k.Ready != nil && k.Session == nil && !k.Sleep.Asleep {
			reasons = append(reasons, "plugin "+k.Name()+" is away (onFailure: block)")
		}
	}
	return reasons
}

// Unready says what the first revision waits for: what rows and resources come from, and who says
// who is calling, as without them the first callers would be told that nobody can.
func (p *Pipeline) Unready() []string {
	var reasons []string
	for _, k := range p.state.Roster.Sorted() {
		asked := k.Kind().Authenticates() && k.Expected.OnDemand // it starts afterwards
		if k.Expected.Optional || k.Kind().Acts() || asked {
			continue
		}
		s := p.state.Roster.Session(k.Name())
		switch {
		case k.Sleep.Asleep:
		case s == nil:
			reasons = append(reasons, fmt.Sprintf("plugin %s has not started", k.Name()))
		case k.Kind().Patches(), k.Kind().Authenticates():
		case !s.Plugin.Ready.Derives && !s.Source.Synced && (!s.Generates() || len(s.Plugin.Ready.Publishes) > 0):
			reasons = append(reasons, fmt.Sprintf("plugin %s has not synced", k.Name()))
		}
	}
	if len(reasons) == 0 {
		reasons = p.intake.sleepers.rouseDerivers()
	}
	if len(reasons) == 0 && !p.state.Instances.Gone {
		p.state.Instances.Gather()
		reasons = append(reasons, "plugins that rows ask for (forEach) are being started")
	}
	return reasons
}

func (p *Pipeline) waitingFor() string {
	if p.state.Course.Flight == nil || len(p.state.Course.Flight.Waiting()) == 0 {
		return ""
	}
	return " by " + strings.Join(p.state.Course.Flight.Waiting(), ", ")
}
