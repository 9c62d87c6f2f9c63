package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Log is a Publisher's.
type Log func(level sdk.Level, text string, args ...any)

// Session is a client of an etcd that is dialled anew until it is reached.
type Session struct {
	access Access

	mu     sync.Mutex
	client *clientv3.Client
	// dialling: somebody does, and closes ready when it is done.
	ready chan struct{}
	last  error
	// again is told when the connection was lost and is there again.
	again chan struct{}
}

// NewSession returns one that isn't connected. Run connects it.
func NewSession(a Access) *Session {
	return &Session{access: a, ready: make(chan struct{}), again: make(chan struct{}, 1)}
}

// retry is the pause between two tries.
const retry = time.Second

// Run connects, says what is in the way, once a minute and to the core (sdk.Lost), and holds the
// connection until ctx ends. That etcd is there again is for those to say (sdk.Found) who know what
// has changed meanwhile.
func (s *Session) Run(ctx context.Context, log Log) {
	said := complaints{}
	for {
		dialling, cancel := context.WithCancel(ctx)
		c, err := s.access.dial(dialling)
		if err == nil {
			s.set(c, nil)
			s.watch(ctx, c, log, &said)
			s.set(nil, ctx.Err())
			_ = c.Close()
			cancel()
			return
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.set(nil, err)
		sdk.Lost(ctx, err)
		if said.first(err, time.Now()) {
			log(sdk.Warn, "etcd can't be reached or refuses this client; what is known stays, and it is tried again",
				"endpoints", s.access.Endpoints, "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}

// watch says when the connection is lost and when it is there again.
func (s *Session) watch(ctx context.Context, c *clientv3.Client, log Log, said *complaints) {
	conn, lost := c.ActiveConnection(), false
	for state := conn.GetState(); ; state = conn.GetState() {
		switch {
		case state == connectivity.TransientFailure && !lost:
			lost = true
			why := reason(ctx, c)
			if sdk.Lost(ctx, errors.New(why)); said.first(errAway, time.Now()) {
				log(sdk.Warn, "etcd can't be reached; what is known stays, and it is tried again", "endpoints", s.access.Endpoints, "error", why)
			}
		case state == connectivity.Ready && lost:
			lost = false
			log(sdk.Info, "etcd is reached again", "endpoints", s.access.Endpoints)
			select {
			case s.again <- struct{}{}:
			default:
			}
		case state == connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// reason is why the connection is lost: what a request that doesn't wait is told.
func reason(ctx context.Context, c *clientv3.Client) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := etcdserverpb.NewKVClient(c.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("none")}, grpc.WaitForReady(false))
	if err == nil {
		return "it is there again"
	}
	return status.Convert(err).Message()
}

func (s *Session) set(c *clientv3.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = err
	if was := s.client; was != nil && c == nil {
		s.ready = make(chan struct{})
	} else if was == nil && c != nil {
		close(s.ready)
	}
	s.client = c
}

// Client waits for the connection. Where it does not come before ctx ends, the error says why.
func (s *Session) Client(ctx context.Context) (*clientv3.Client, error) {
	for {
		s.mu.Lock()
		c, ready, last := s.client, s.ready, s.last
		s.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-ready:
		case <-ctx.Done():
			if last != nil {
				return nil, last
			}
			return nil, ctx.Err()
		}
	}
}
