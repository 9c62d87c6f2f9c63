package control

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// suspect notes changed rows that the plugin will be given, or is not given any more.
func (k *known) suspect(changes environment.Changes) {
	if !k.Sleep.Asleep && k.ready != nil && (k.ready.Derives || k.Kind() == pb.KindGenerator) {
		k.suspects.Changed(k.ready.Reads, changes)
	}
}

// died counts deaths of a plugin that owed a Done. After the third in a row it gets the rows that
// had changed since its last Done as they were before, until they change again.
func (r *roster) died(s *session) {
	if s.State.Busy.IsZero() || r.course.closed || !s.generates() && !s.plugin.ready.Derives {
		return
	}
	names, deaths := s.plugin.suspects.Died()
	if len(names) == 0 {
		return
	}
	const most = 10
	r.log.Error("a plugin dies over these rows: it gets them as they were before, until they change again",
		"plugin", s.Name(), "deaths", deaths, "rows", names[:min(len(names), most)], "more", max(0, len(names)-most))
	r.metrics.Fault(s.Name())
}
