package parttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Told is a message to a plugin in words.
func (w *World) Told(m *pb.FromCore) string {
	switch {
	case m.State != nil:
		return stateWords(m.State)
	case m.Attach != nil:
		return List(append([]string{"attach", w.called(m.Attach.Connection)}, shorts(m.Attach.Types)...), " ", "")
	case m.Detach != nil:
		return "detach " + w.called(m.Detach.Connection)
	case m.Want != nil:
		return fmt.Sprintf("want %d: %s %d %s", m.Want.Id, Word(m.Want.Type), m.Want.View, wish(m.Want.Wildcard, m.Want.Names))
	case m.Drop != nil && m.Drop.All:
		return fmt.Sprintf("drop %s %d", Word(m.Drop.Type), m.Drop.View)
	case m.Drop != nil:
		return fmt.Sprintf("drop %s %d %s", Word(m.Drop.Type), m.Drop.View, wish(m.Drop.Wildcard, m.Drop.Names))
	case m.Patch != nil:
		r := m.Patch.Resources[0]
		return fmt.Sprintf("patch %d: %s %s=%s", m.Patch.Id, Word(m.Patch.Type), r.Name, decode(m.Patch.Type, r.Bytes))
	case m.Freed != nil:
		return fmt.Sprintf("freed %d", len(m.Freed.Bodies))
	case m.Missing != nil:
		return fmt.Sprintf("missing %d", len(m.Missing.Bodies))
	case m.Report != nil:
		return w.reportWords(m.Report)
	case m.Blame != nil:
		return blameWords(m.Blame)
	case m.Explain != nil:
		return fmt.Sprintf("explain %d: %s %d %s", m.Explain.Id, Word(m.Explain.Type), m.Explain.View, m.Explain.Name)
	case m.Call != nil:
		return callWords(m.Call)
	case m.Authenticate != nil:
		text := fmt.Sprintf("authenticate %d: %s", m.Authenticate.Id, m.Authenticate.RemoteAddress)
		for _, key := range slices.Sorted(maps.Keys(m.Authenticate.Headers)) {
			text += " " + key + "=" + m.Authenticate.Headers[key]
		}
		return text
	case m.Store != nil:
		return fmt.Sprintf("store %d: %s", m.Store.Id, m.Store.Table)
	case m.Stored != nil:
		return strings.TrimSpace(fmt.Sprintf("stored %d %s", m.Stored.Id, m.Stored.Error))
	}
	return "something else"
}

// callWords has the size of a request that is a part of a larger one.
func callWords(c *pb.Call) string {
	if c.Method == "" || c.More {
		return strings.TrimSpace(fmt.Sprintf("call %d: %d bytes, more %s", c.Id, len(c.Request), archive.YesNo(c.More)))
	}
	text := fmt.Sprintf("call %d: %s %s", c.Id, c.Method, c.Request)
	if c.Core {
		return text + " by the core"
	}
	return text + " by " + List(c.Identities, " ", c.RemoteAddress)
}

// stateWords has the rows of a state, sorted.
func stateWords(s *pb.State) string {
	words := []string{fmt.Sprintf("state %d", s.Revision.Number)}
	if s.Whole {
		words = append(words, "whole")
	}
	if s.Overtakes {
		words = append(words, "ahead")
	}
	var rows []string
	for _, t := range s.Tables {
		for _, r := range t.Upserts {
			rows = append(rows, t.Table+" "+r.Key+"="+string(r.Payload))
		}
		for _, key := range t.Deletes {
			rows = append(rows, t.Table+" -"+key)
		}
	}
	slices.Sort(rows)
	return strings.Join(append(words, rows...), " ")
}

func (w *World) reportWords(r *pb.Report) string {
	event := map[pb.ReportEvent]string{pb.ReportEventAck: "accepts", pb.ReportEventNack: "refuses", pb.ReportEventHealth: "health"}[r.Event]
	words := []string{"report", w.called(r.Connection), Word(r.Type), event}
	if r.Revision != nil {
		words = append(words, fmt.Sprint(r.Revision.Number))
	}
	if r.Detail != "" {
		words = append(words, r.Detail)
	}
	return strings.Join(words, " ")
}

func blameWords(b *pb.Blame) string {
	var all []string
	for _, r := range b.Rows {
		text := fmt.Sprintf("%s %s", r.Table, r.Key)
		if r.Resource != "" {
			text += fmt.Sprintf(" of %s %s by %d", Word(r.Type), r.Resource, r.Proxies)
		}
		if r.Held {
			text += " held"
		}
		all = append(all, text+": "+r.Reason)
	}
	return "blame " + List(all, ", ", "nothing")
}

func wish(all bool, names []string) string {
	if all {
		names = append([]string{"*"}, names...)
	}
	return strings.Join(names, " ")
}

// called is the name of a proxy that is or was there.
func (w *World) called(id uint64) string {
	for name, conn := range w.Proxies {
		if conn.ID == id {
			return name
		}
	}
	return fmt.Sprint(id)
}
