package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/push"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// stream is one client's stream while it lasts. Its handler owns all of it; reading and the sending of one response are goroutines of
// their own, since each may block for as long as the stream lives.
type stream struct {
	server   *Server
	endpoint *endpoint
	grpc     grpc.ServerStream
	log      *slog.Logger
	delta    bool

	node       *core.Node
	remote     string
	since      time.Time
	machine    *machine
	connection Connection
	member     *push.Member
	inspect    chan func()
	done       chan struct{}

	ready   []*response // composed, not handed over yet
	pushing bool        // it is our turn
	sending *sending    // a response is being handed over
	sent    chan error
	alarm   *time.Timer
	slow    *time.Timer
	timeout *time.Timer
}

// sending is a response that is being handed over.
type sending struct {
	response *response
	since    time.Time
}

// received is what reading gave.
type received struct {
	request
	err error
}

// handle serves a stream until it ends.
func (e *endpoint) handle(g grpc.ServerStream, delta bool, typeURL string) error {
	s := e.server
	if err := s.admit(g.Context()); err != nil {
		return err
	}
	requests := make(chan received)
	e.wg.Go(func() { read(g, delta, typeURL, requests) })
	st := &stream{server: s, endpoint: e, grpc: g, delta: delta, inspect: make(chan func()), done: make(chan struct{}), sent: make(chan error, 1)}
	first, err := st.greet(requests)
	if err != nil {
		return err
	}
	if err := st.connect(first.node()); err != nil {
		return err
	}
	defer st.close()
	if err := st.take(first.request); err != nil {
		return err
	}
	return st.run(requests)
}

// admit lets a new stream in, at the rate that is set.
func (s *Server) admit(ctx context.Context) error {
	if s.rate == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := s.rate.Wait(ctx); err != nil {
		s.metrics.limited.Inc()
		return status.Errorf(codes.ResourceExhausted, "more than %v new streams per second: try again", s.config.StreamsPerSecond)
	}
	return nil
}

// read passes requests on until the stream ends, which it does with its handler.
func read(g grpc.ServerStream, delta bool, typeURL string, out chan<- received) {
	for {
		r, err := receive(g, delta, typeURL)
		select {
		case out <- received{r, err}:
		case <-g.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// greet waits for the first request that counts: reports of health may come before it and mean nothing then.
func (st *stream) greet(requests <-chan received) (received, error) {
	for {
		select {
		case r := <-requests:
			if r.err != nil {
				return r, ended(r.err)
			}
			if r.typeURL() == healthType {
				continue
			}
			return r, checkNode(r.node())
		case <-st.endpoint.stop:
			return received{}, errStopping()
		case <-st.grpc.Context().Done():
			return received{}, st.grpc.Context().Err()
		}
	}
}

// connect registers the stream with the source.
func (st *stream) connect(node *core.Node) error {
	s := st.server
	ctx := st.grpc.Context()
	if p, ok := peer.FromContext(ctx); ok {
		st.remote = p.Addr.String()
	}
	var identities []string
	if s.config.Identify != nil {
		var err error
		if identities, err = s.config.Identify(ctx, node); err != nil {
			st.refuse(node, err)
			return err
		}
	}
	st.node, st.since = node, time.Now()
	protocol := "sotw"
	if st.delta {
		protocol = "delta"
	}
	st.member = s.turns.Join()
	var err error
	st.connection, err = s.config.Source.Connect(ctx, Peer{Node: node, Identities: identities, RemoteAddress: st.remote, Protocol: protocol},
		func() { st.member.Want(false) })
	if err != nil {
		st.member.Leave()
		st.refuse(node, err)
		return err
	}
	st.log = s.config.Log.With("node", node.Id, "connection", st.connection.ID())
	st.machine = &machine{
		common: s.common, delta: st.delta, offers: st.connection.Offers, authenticated: len(identities) > 0,
		prefix: fmt.Sprintf("%08x-%d-", s.seed, st.connection.ID()),
	}
	st.alarm, st.slow, st.timeout = stopped(), stopped(), stopped()
	s.join(st)
	st.log.Info("stream begins", "remote", st.remote, "protocol", protocol)
	return nil
}

// refuse counts and logs that the stream does not begin.
func (st *stream) refuse(node *core.Node, reason error) {
	st.server.metrics.refused.WithLabelValues(status.Code(reason).String()).Inc()
	st.server.config.Log.Info("stream refused", "node", node.Id, "remote", st.remote, "reason", reason)
}

// stopped returns a timer that doesn't run.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (st *stream) close() {
	close(st.done)
	st.server.leave(st)
	st.member.Leave()
	st.connection.Close()
	for _, t := range []*time.Timer{st.alarm, st.slow, st.timeout} {
		t.Stop()
	}
	st.log.Info("stream ends", "after", time.Since(st.since).Round(time.Millisecond))
}

// run does what comes up until the stream ends.
func (st *stream) run(requests <-chan received) error {
	for {
		var err error
		select {
		case r := <-requests:
			if r.err != nil {
				return ended(r.err)
			}
			err = st.take(r.request)
		case <-st.member.Turn():
			err = st.push()
		case err = <-st.sent:
			err = st.delivered(err)
		case <-st.alarm.C:
			st.member.Want(true)
		case <-st.slow.C:
			st.member.Yield()
		case <-st.timeout.C:
			err = st.expired()
		case f := <-st.inspect:
			f()
		case <-st.endpoint.stop:
			return errStopping()
		case <-st.grpc.Context().Done():
			return status.FromContextError(st.grpc.Context().Err()).Err()
		}
		if err != nil {
			return err
		}
	}
}

// take handles a request.
func (st *stream) take(r request) error {
	if r.typeURL() == healthType {
		st.connection.Report(Outcome{Type: healthType, Health: true, Refused: r.errorDetail().GetMessage()})
		return nil
	}
	var e effects
	if st.delta {
		e = st.machine.deltaRequest(r.delta)
	} else {
		e = st.machine.sotw(r.sotw)
	}
	if e.unknown {
		st.server.metrics.unknown.Inc()
		st.log.Warn("request for a type that no generator offers to this proxy: not answered", "type", r.typeURL())
	}
	if e.stale {
		st.server.metrics.expired.WithLabelValues(short(r.typeURL())).Inc()
	}
	if w := e.subscribe; w != nil {
		st.connection.Subscribe(w.typeURL, w.wildcard, w.names)
	}
	if e.report != nil {
		st.report(e.report)
	}
	if e.turn {
		st.member.Want(true)
	}
	return nil
}

func (st *stream) report(o *Outcome) {
	if o.Refused != "" {
		st.server.metrics.rejects(o.Type)
		st.log.Warn("response refused", "type", o.Type, "version", o.Version, "reason", o.Refused)
	}
	st.connection.Report(*o)
}

// push takes our turn: what the source serves becomes responses.
func (st *stream) push() error {
	st.pushing = true
	served := st.connection.Pull()
	if served.Err != nil {
		return served.Err
	}
	responses, alarm := st.machine.serve(time.Now(), served)
	if st.alarm.Stop(); !alarm.IsZero() {
		st.alarm.Reset(time.Until(alarm))
	}
	st.ready = append(st.ready, responses...)
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
	st.ready = st.ready[1:]
	size := r.size()
	st.member.Sending(int64(size))
	st.server.metrics.pushed(r.typeURL, size)
	st.sending = &sending{r, time.Now()}
	st.slow.Reset(st.server.config.SlowAfter)
	if t := st.server.config.SendTimeout; t > 0 {
		st.timeout.Reset(t)
	}
	st.endpoint.wg.Go(func() { st.sent <- st.grpc.SendMsg(r) })
	return nil
}

// delivered follows a response that gRPC has taken, which says nothing about its arrival.
func (st *stream) delivered(err error) error {
	if err != nil {
		st.server.metrics.sendErrors.WithLabelValues(short(st.sending.response.typeURL)).Inc()
		return err
	}
	st.server.metrics.sendTime.Observe(time.Since(st.sending.since).Seconds())
	st.sending = nil
	st.slow.Stop()
	st.timeout.Stop()
	return st.next()
}

// expired ends a stream whose client takes nothing. The blocked send ends with the handler.
func (st *stream) expired() error {
	st.server.metrics.timeouts.Inc()
	st.log.Warn("the client takes nothing: its stream ends", "type", st.sending.response.typeURL, "after", st.server.config.SendTimeout)
	return status.Errorf(codes.DeadlineExceeded, "no response was taken for %v", st.server.config.SendTimeout)
}

func errStopping() error {
	return status.Error(codes.Unavailable, "the control plane is stopping: connect again")
}

// ended returns what a stream ends with when reading failed.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
