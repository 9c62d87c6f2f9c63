package xds

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// stream is one conversation with the server, state of the world.
// Source: Envoy, "xDS REST and gRPC protocol".
type stream struct {
	*client
	token string
	ads   discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	heard chan heard
	// done is closed when nothing is heard any more.
	done    chan struct{}
	running sync.WaitGroup
	// refused are the refusals of each type in a row, and later replies that wait.
	refused map[string]refusals
	later   map[string]later
	due     *time.Timer
}

// heard is what comes of the server: that the stream is there, an answer, or its end.
type heard struct {
	ads    discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	answer *discovery.DiscoveryResponse
	err    error
}

// refusals are how often in a row the same answer was refused.
type refusals struct {
	sum   [sha256.Size]byte
	times int
}

// later is a request that waits for its time.
type later struct {
	request *discovery.DiscoveryRequest
	at      time.Time
}

func newStream(c *client, token string) *stream {
	return &stream{
		client: c, token: token, heard: make(chan heard), done: make(chan struct{}), refused: map[string]refusals{},
		later: map[string]later{}, due: time.NewTimer(time.Hour),
	}
}

// follow asks for all types and takes what comes until the stream ends (err), or the publisher's
// session (failed).
func (s *stream) follow(ctx context.Context) (failed, err error) {
	defer s.due.Stop()
	if s.publication.connecting() {
		s.missed.Reset(s.config.Wait)
	}
	s.running.Go(func() { s.listen(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.missed.C:
			failed = s.publication.missed()
		case <-s.due.C:
			err = s.sendDue()
		case h := <-s.heard:
			switch {
			case h.err != nil:
				return nil, h.err
			case h.ads != nil:
				s.ads = h.ads
				s.publication.connected()
				err = s.ask()
			default:
				failed, err = s.handle(h.answer)
			}
		}
		if failed != nil || err != nil {
			return failed, err
		}
	}
}

// listen opens the stream, however long that takes, and hands on what comes, at a pace.
func (s *stream) listen(ctx context.Context) {
	defer close(s.done)
	tell := func(h heard) bool {
		select {
		case s.heard <- h:
			return h.err == nil
		case <-ctx.Done():
			return false
		}
	}
	if s.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.token)
	}
	s.conn.ResetConnectBackoff() // how long to wait is said by who tries
	ads, err := discovery.NewAggregatedDiscoveryServiceClient(s.conn).StreamAggregatedResources(ctx)
	for more := tell(heard{ads: ads, err: err}); more; {
		if err := s.pace.Wait(ctx); err != nil {
			return
		}
		m, err := ads.Recv()
		more = tell(heard{answer: m, err: err})
	}
}

// ask subscribes to all types, each as if for the first time: a server that was restarted may count
// versions anew.
func (s *stream) ask() error {
	var node *corev3.Node
	for i, a := range s.config.asked {
		if node = nil; i == 0 {
			node = s.config.node()
		}
		if err := s.ads.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: a.url}); err != nil {
			return s.end(err)
		}
	}
	return nil
}

// end is why a request could not be sent: the stream's own end says it, which comes next.
func (s *stream) end(err error) error {
	for {
		select {
		case h := <-s.heard:
			if h.err != nil {
				return h.err
			}
		case <-s.done:
			return err
		}
	}
}

// handle publishes an answer and replies.
func (s *stream) handle(m *discovery.DiscoveryResponse) (failed, err error) {
	if len(s.publication.heard) == 0 { // what follows the first answer has its time, too
		s.missed.Reset(s.config.Wait)
	}
	r, asked, failed := s.publication.handle(m)
	if failed != nil || !asked {
		return failed, nil
	}
	request := &discovery.DiscoveryRequest{TypeUrl: m.TypeUrl, VersionInfo: r.version, ResponseNonce: m.Nonce}
	delete(s.later, m.TypeUrl)
	if r.refused == "" {
		delete(s.refused, m.TypeUrl)
		return nil, s.send(request)
	}
	request.ErrorDetail = &spb.Status{Code: int32(codes.InvalidArgument), Message: r.refused}
	was := s.refused[m.TypeUrl]
	if was.sum != r.sum {
		was = refusals{sum: r.sum}
	}
	was.times++
	s.refused[m.TypeUrl] = was
	if was.times == 1 {
		return nil, s.send(request)
	}
	// A server that says the same again whenever it is refused would do so without end.
	s.later[m.TypeUrl] = later{request, time.Now().Add(delay(was.times-2, time.Second, s.config.MaxRetry))}
	s.arm()
	return nil, nil
}

func (s *stream) send(r *discovery.DiscoveryRequest) error {
	if err := s.ads.Send(r); err != nil {
		return s.end(err)
	}
	return nil
}

// sendDue sends what has waited long enough.
func (s *stream) sendDue() error {
	now := time.Now()
	for url, l := range s.later {
		if l.at.After(now) {
			continue
		}
		delete(s.later, url)
		if err := s.send(l.request); err != nil {
			return err
		}
	}
	s.arm()
	return nil
}

// arm sets the timer to what is due first.
func (s *stream) arm() {
	next := time.Now().Add(time.Hour)
	for _, l := range s.later {
		if l.at.Before(next) {
			next = l.at
		}
	}
	s.due.Reset(time.Until(next))
}
