package xds

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/ticks"
)

// weighEvery is how often memory is looked at, endEvery how often streams are ended: it takes a
// while until that shows.
const weighEvery, endEvery = 100 * time.Millisecond, 500 * time.Millisecond

// remind is how often it is said again that memory is short.
const remind = time.Minute

// pressure is how much memory the process uses, and what that means.
type pressure struct {
	level       budget.Level
	used, limit uint64
	// high is when as much was used last as the level is entered from, said when the log was told
	// of it, ended when streams were ended last.
	high, said, ended time.Time
}

// next is the pressure after a look.
func (p *pressure) next(used, limit uint64, at time.Time) *pressure {
	n := &pressure{p.level.Next(used, limit, at.Sub(p.high) >= budget.Rest), used, limit, p.high, p.said, p.ended}
	if budget.Calm.Next(used, limit, false) >= n.level {
		n.high = at
	}
	return n
}

// Watch looks at the process's memory until ctx ends, and sheds streams before there is none left.
func (s *Server) Watch(ctx context.Context) error {
	for range ticks.Every(ctx, weighEvery) {
		s.weigh()
	}
	return nil
}

// weigh takes one look.
func (s *Server) weigh() {
	if s.config.Memory == nil {
		return
	}
	used, limit := s.config.Memory()
	was := s.pressure.Load()
	at := time.Now()
	now := was.next(used, limit, at)
	s.say(was, now)
	ends := now.level == budget.Ending && at.Sub(now.ended) >= endEvery
	if ends {
		now.ended = at
	}
	s.pressure.Store(now)
	s.metrics.overload.Set(float64(now.level))
	if excess := budget.Excess(used, limit); excess > 0 {
		s.relieve(excess, now.level > budget.Calm)
	}
	if ends {
		s.shed(now)
	}
}

// say logs a change, and now and then that nothing changes as long as streams are refused.
func (s *Server) say(was, now *pressure) {
	level := slog.LevelWarn
	if now.level == budget.Calm {
		level = slog.LevelInfo
	}
	if now.level != was.level || level == slog.LevelWarn && now.high.Sub(now.said) >= remind {
		now.said = now.high
		s.config.Log.Log(context.Background(), level, "memory", "state", now.level.String(), "before",
			was.level.String(), "used", now.used, "limit", now.limit, "streams", len(s.snapshot()))
	}
}

// relieve lets go of what is only kept for later.
func (s *Server) relieve(bytes uint64, short bool) {
	if short {
		s.codec.lists.letGo()
		s.common.memo.letGo()
	}
	if s.config.Relieve != nil {
		s.config.Relieve(bytes, short)
	}
}

// short says why no stream may begin now; nil if one may.
func (s *Server) short() error {
	if p := s.pressure.Load(); p.level >= budget.Shedding {
		return budget.Short(p.used, p.limit)
	}
	return nil
}

// grows says why a stream that came to hold more may not go on: the heaviest are being ended, and
// it would be one of them. nil if it may.
func (s *Server) grows(before, holds int) error {
	if p := s.pressure.Load(); p.level == budget.Ending && holds > before && budget.Heavy(int64(holds), p.limit) {
		return budget.Short(p.used, p.limit)
	}
	return nil
}

// Overloaded says why new streams are refused for lack of memory; empty while they aren't.
func (s *Server) Overloaded() string {
	if err := s.short(); err != nil {
		return err.Error()
	}
	return ""
}

// shed ends the heaviest streams.
func (s *Server) shed(p *pressure) {
	streams := s.snapshot()
	slices.SortFunc(streams, func(a, b *stream) int { return cmp.Compare(b.weighs.Load(), a.weighs.Load()) })
	weights := make([]int64, len(streams))
	for i, st := range streams {
		weights[i] = st.weighs.Load()
	}
	many := budget.Heaviest(weights, p.limit)
	for _, st := range streams[:many] {
		select {
		case st.evicted <- budget.Short(p.used, p.limit):
		default: // it has been told
		}
	}
}

// snapshot returns the streams that are connected.
func (s *Server) snapshot() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := make([]*stream, 0, len(s.streams))
	for st := range s.streams {
		streams = append(streams, st)
	}
	return streams
}

// weighed notes what the stream costs: what it holds and what waits to be written to it.
func (st *stream) weighed(holds int) {
	st.holds = holds
	queued := 0
	for _, r := range st.ready {
		queued += r.bytes
	}
	if st.sending != nil {
		queued += st.sending.response.bytes
	}
	st.weighs.Store(int64(st.holds + queued))
}

// Budget is what clients may cost and do cost, for people to look at.
type Budget struct {
	State  string        `json:"state"`
	Used   uint64        `json:"memoryUsed"`
	Limit  uint64        `json:"memoryLimit"`
	Limits budget.Limits `json:"limits"`
	// Peers are those that cost most.
	Peers []budget.Use `json:"peers"`
}

// shown is how many peers are shown.
const shown = 100

// Budget returns it.
func (s *Server) Budget() any {
	p := s.pressure.Load()
	uses := s.peers.Uses()
	slices.SortFunc(uses, func(a, b budget.Use) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Streams, a.Streams), cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Peer, b.Peer))
	})
	return Budget{p.level.String(), p.used, p.limit, s.config.Limits, uses[:min(len(uses), shown)]}
}
