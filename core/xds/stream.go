package xds

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/push"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stream is one client's stream while it lasts. Its handler owns all of it; reading and the sending
// of one response are goroutines of their own, since each may block for as long as the stream
// lives.
type stream struct {
	server   *Server
	endpoint *endpoint
	grpc     grpc.ServerStream
	lease    *budget.Lease
	log      *slog.Logger
	delta    bool

	node       *core.Node
	weight     int    // of the node in memory
	version    string // of the proxy, as metrics have it
	identities []string
	remote     string
	since      time.Time
	machine    *machine
	connection Connection
	member     *push.Member
	inspect    chan func()
	done       chan struct{}

	work work // what the next turn is for
	// passed is since when a push waits that endpoints overtook; zero if none does.
	passed time.Time

	// questions are the last of each type that is answered per request, replies come from who
	// answers them, answered wait for a turn.
	questions map[string]asked
	replies   chan reply
	answered  []*response
	// holds is what the stream keeps, weighs also what waits to be written, in bytes. evicted says
	// that it has to end.
	holds   int
	weighs  atomic.Int64
	evicted chan error

	posed  int               // questions without an answer
	asking map[string]asking // by type, while some names have no answer

	ready   []*response // composed, not handed over yet
	pushing bool        // it is our turn
	sending *sending    // a response is being handed over
	// composing is since when the response that is being sent could be composed: our turn began, or
	// the one before it was written.
	composing time.Time
	sent      chan error    // what became of handing it over
	written   chan struct{} // gRPC has written it
	alarm     *time.Timer
	slow      *time.Timer
	yielded   bool // to others, and what is being sent has not been written yet
	timeout   *time.Timer
	later     *time.Timer // when names that wait are handed on
}

// sending is a response that is being handed over.
type sending struct {
	response        *response
	since           time.Time
	queued, written bool
}

// incoming is what reading gives: requests, and in the end why there are no more.
type incoming struct {
	requests chan request
	failed   chan error
}

// handle serves a stream until it ends.
func (e *endpoint) handle(g grpc.ServerStream, delta bool, typeURL string) error {
	s := e.server
	in := incoming{make(chan request), make(chan error, 1)}
	e.wg.Go(func() { in.failed <- read(g, delta, typeURL, in.requests) })
	st := &stream{
		server: s, endpoint: e, grpc: g, lease: leaseOf(g), evicted: make(chan error, 1), delta: delta,
		inspect: make(chan func()), done: make(chan struct{}), questions: map[string]asked{},
		asking: map[string]asking{}, replies: make(chan reply), sent: make(chan error, 1),
		written: make(chan struct{}, 1),
	}
	st.remote = remoteOf(g.Context())
	first, err := st.greet(in)
	switch {
	case errors.Is(err, io.EOF):
		return nil // it hung up before it had said anything
	case err != nil:
		st.refuse(first.node(), err)
		return err
	}
	if err = st.connect(first); err != nil {
		return err
	}
	defer func() { st.close(err) }()
	if err = st.handle(first); err == nil {
		err = st.run(in)
	}
	return err
}

// read passes requests on until the stream ends, which it does with its handler. It returns why.
func read(g grpc.ServerStream, delta bool, typeURL string, out chan<- request) error {
	for {
		r, err := receive(g, delta, typeURL)
		if err != nil {
			return err
		}
		select {
		case out <- r:
		case <-g.Context().Done():
			return status.FromContextError(g.Context().Err()).Err()
		}
	}
}

// greet waits for the first request that counts: reports of health may come before it and mean
// nothing then.
func (st *stream) greet(in incoming) (request, error) {
	l := &st.server.config.Limits.Stream
	var late <-chan time.Time
	if l.Idle > 0 {
		timer := time.NewTimer(l.Idle)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case r := <-in.requests:
			if st.server.config.health(r) {
				continue
			}
			return r, cmp.Or(checkNode(r.node()), l.CheckNode(r.node()))
		case err := <-in.failed:
			return request{}, err
		case <-late:
			return request{}, l.Silent()
		case <-st.endpoint.stop:
			return request{}, errStopping()
		}
	}
}

// connect registers the stream with the source.
func (st *stream) connect(first request) error {
	s, node := st.server, first.node()
	ctx := st.grpc.Context()
	var identities []string
	if s.config.Identify != nil {
		var err error
		if identities, err = s.config.Identify(ctx, node); err != nil {
			st.refuse(node, err)
			return err
		}
	}
	st.node, st.weight, st.identities, st.since = node, budget.Weigh(node), identities, time.Now()
	protocol := "sotw"
	if st.delta {
		protocol = "delta"
	}
	if err := st.introduce(); err != nil {
		st.refuse(node, err)
		return err
	}
	st.member = s.turns.Join()
	var err error
	st.connection, err = s.config.Source.Connect(ctx,
		Peer{Node: node, Identities: identities, RemoteAddress: st.remote, Plain: !secured(ctx), Protocol: protocol, Names: first.names()},
		st.wake)
	if err != nil {
		st.member.Leave()
		st.refuse(node, err)
		return err
	}
	st.log = s.config.Log.With("node", budget.Line(node.Id, maxLogged), "connection", st.connection.ID())
	st.machine = &machine{
		common: s.common, delta: st.delta, offers: st.connection.Offers, authenticated: len(identities) > 0,
		envoy:  node.GetUserAgentName() == "envoy",
		prefix: fmt.Sprintf("%08x-%d-", s.seed, st.connection.ID()),
	}
	st.alarm, st.slow, st.timeout, st.later = stopped(), stopped(), stopped(), stopped()
	s.join(st)
	st.log.Info("stream begins", "remote", st.remote, "protocol", protocol)
	return nil
}

// refuse counts and logs that the stream does not begin.
func (st *stream) refuse(node *core.Node, reason error) {
	code := status.Code(reason).String()
	st.server.metrics.refused.WithLabelValues(code).Inc()
	st.server.metrics.limited(reason)
	st.server.lines.log(st.server.config.Log, slog.LevelInfo, "stream refused", "node",
		budget.Line(node.GetId(), maxLogged), "remote", st.remote, "code", code, "reason", reason)
}

// stopped returns a timer that doesn't run.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (st *stream) close(reason error) {
	close(st.done)
	st.server.leave(st)
	st.server.slow.note(st, false)
	st.member.Leave()
	st.connection.Close()
	for _, t := range []*time.Timer{st.alarm, st.slow, st.timeout, st.later} {
		t.Stop()
	}
	st.ended(reason)
}

// run does what comes up until the stream ends.
func (st *stream) run(in incoming) error {
	for {
		var err error
		select {
		case r := <-in.requests:
			err = st.handle(r)
		case err = <-in.failed: // also when the stream's context ends
			return hungUp(err)
		case <-st.member.Turn():
			err = st.push()
		case err = <-st.sent:
			err = st.queued(err)
		case <-st.written:
			st.sending.written = true
			err = st.delivered()
		case <-st.alarm.C:
			st.want(answers)
		case <-st.later.C:
			err = st.resume()
		case <-st.slow.C:
			st.member.Yield()
			st.server.slow.note(st, true)
		case <-st.timeout.C:
			err = st.expired()
		case a := <-st.replies:
			err = st.reply(a)
		case f := <-st.inspect:
			f()
		case err = <-st.evicted:
		case <-st.endpoint.stop:
			return errStopping()
		}
		if err != nil {
			return err
		}
	}
}

// maxLogged is how many bytes of what a client says of itself are logged.
const maxLogged = 256

// handle handles a request.
func (st *stream) handle(r request) error {
	l := &st.server.config.Limits.Stream
	if err := r.check(l, st.server.codec.lists); err != nil {
		return err
	}
	if r.cut(l.ErrorBytes) {
		st.server.metrics.limits.WithLabelValues("maxErrorBytes").Inc()
	}
	if st.server.config.health(r) {
		o := Outcome{Type: r.typeURL(), Health: true}
		if why := r.errorDetail(); why != nil {
			o.Refused = cmp.Or(redact.Text(why.Message), "no reason was given")
		}
		st.connection.Report(o)
		return nil
	}
	if a := st.server.config.Answerer; a != nil && a.Answers(r.typeURL()) {
		return st.answer(r)
	}
	var e effects
	st.machine.now = time.Now()
	if st.delta {
		e = st.machine.deltaRequest(r.delta)
	} else {
		e = st.machine.sotw(r.sotw)
	}
	return st.apply(r, e)
}

// apply does what the machine says of a request.
func (st *stream) apply(r request, e effects) error {
	l := &st.server.config.Limits.Stream
	if e.unknown {
		st.server.metrics.unknown.Inc()
		st.server.lines.log(st.log, slog.LevelWarn,
			"request for a type that no generator offers to this proxy: not answered", "type",
			budget.Line(r.typeURL(), maxLogged))
	}
	if e.vain {
		if err := l.CheckQuestions(st.posed + len(st.answered) + 1); err != nil {
			return err
		}
		st.server.lines.log(st.log, slog.LevelWarn,
			"a wildcard for a type that is asked for by name: answered with nothing", "type",
			budget.Line(r.typeURL(), maxLogged))
		st.respond(r.typeURL(), nil)
	}
	if e.stale {
		st.server.metrics.expired.WithLabelValues(short(r.typeURL())).Inc()
	}
	h, before := st.holding(), st.holds
	st.weighed(h.Bytes)
	if err := cmp.Or(l.CheckHolding(h), st.server.grows(before, h.Bytes)); err != nil {
		return err
	}
	if e.subscribe != nil {
		w := st.machine.find(r.typeURL())
		if err := st.hand(w, st.machine.newest.Types[w.url]); err != nil {
			return err
		}
	}
	if e.report != nil {
		if !e.turn {
			e.report.Answered = newlyAnswered(st.machine)
		}
		st.report(e.report)
	}
	switch {
	case e.answer:
		st.want(answers)
	case e.turn: // after the others: all clients get the first step of a push before one gets the last
		st.want(pushes)
	}
	return nil
}

func (st *stream) report(o *Outcome) {
	if o.Refused != "" {
		st.server.metrics.rejects.WithLabelValues(short(o.Type)).Inc()
		st.server.lines.log(st.log, slog.LevelWarn, "response refused", "type", o.Type, "version", o.Version, "reason", o.Refused)
	}
	st.connection.Report(*o)
}

// push takes our turn: what the source serves becomes responses.
func (st *stream) push() error {
	st.pushing = true
	st.machine.now = time.Now()
	st.composing = st.machine.now
	todo := st.work.drain()
	st.server.metrics.turn(todo, st.work.waited(st.machine.now))
	served := st.connection.Pull()
	if served.Err != nil {
		return served.Err
	}
	if err := st.goOn(served); err != nil {
		return err
	}
	if todo == pushes|dependent && !st.passedLong() {
		st.want(pushes)
		return st.begin(st.machine.ahead(served))
	}
	st.passed = time.Time{}
	responses, alarm := st.machine.serve(time.Now(), served)
	if st.alarm.Stop(); !alarm.IsZero() {
		st.alarm.Reset(time.Until(alarm))
	}
	if len(responses) == 0 {
		if n := newlyAnswered(st.machine); n > 0 {
			st.connection.Report(Outcome{Answered: n})
		}
	}
	return st.begin(responses)
}

// resume hands on names that have waited for others of the same peer.
func (st *stream) resume() error {
	served := st.connection.Pull()
	if served.Err != nil {
		return served.Err
	}
	return st.goOn(served)
}

// begin hands responses over, one by one.
func (st *stream) begin(responses []*response) error {
	responses, st.answered = append(st.answered, responses...), nil
	var bytes int
	for _, r := range responses {
		if r.bytes == 0 {
			r.bytes = r.size()
		}
		bytes += r.bytes
	}
	if err := st.server.config.Limits.Stream.CheckQueue(bytes); err != nil {
		return err
	}
	st.member.Sending(int64(bytes))
	st.ready = append(st.ready, responses...)
	st.weighed(st.holds)
	return st.next()
}

// next hands the next response over, or ends our turn.
func (st *stream) next() error {
	if len(st.ready) == 0 {
		st.pushing = false
		st.member.Done()
		return nil
	}
	r := st.ready[0]
	st.ready[0], st.ready = nil, st.ready[1:]
	st.server.metrics.pushed(r.typeURL, r.bytes)
	st.sending = &sending{response: r, since: time.Now()}
	r.written = func() { st.written <- struct{}{} } // has room: one response at a time
	st.slow.Reset(st.server.slow.patience(st.server.config.SlowAfter))
	if t := st.server.config.SendTimeout; t > 0 {
		st.timeout.Reset(t)
	}
	st.endpoint.wg.Go(func() { st.sent <- st.grpc.SendMsg(r) })
	return nil
}

// queued follows a response that gRPC has taken into its queue.
func (st *stream) queued(err error) error {
	if err != nil {
		st.server.metrics.sendErrors.WithLabelValues(short(st.sending.response.typeURL)).Inc()
		return err
	}
	st.sending.queued = true
	return st.delivered()
}

// delivered goes on when gRPC has written a response, which says nothing about its arrival. Until
// then its bytes count as on their way, and streams whose turn comes later have nothing composed.
func (st *stream) delivered() error {
	if !st.sending.queued || !st.sending.written {
		return nil
	}
	now := time.Now()
	st.server.metrics.sendTime.Observe(now.Sub(st.sending.since).Seconds())
	st.server.metrics.pushTime.WithLabelValues(short(st.sending.response.typeURL)).Observe(now.Sub(st.composing).Seconds())
	st.composing = now
	st.member.Sending(-int64(st.sending.response.bytes))
	st.sending = nil
	st.weighed(st.holds)
	st.slow.Stop()
	st.server.slow.note(st, false)
	st.timeout.Stop()
	return st.next()
}

// expired ends a stream whose client takes nothing. The blocked send ends with the handler.
func (st *stream) expired() error {
	st.server.metrics.timeouts.Inc()
	return status.Errorf(codes.DeadlineExceeded, "the client took nothing for %v", st.server.config.SendTimeout)
}

func errStopping() error {
	return status.Error(codes.Unavailable, "the control plane is stopping: connect again")
}

// hungUp returns what a stream ends with when reading failed.
func hungUp(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
