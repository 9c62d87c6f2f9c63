package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is one with ZooKeeper. Nothing is kept in it that a lost connection would lose, so that
// it is over as soon as its connection is, and a new one reads all again: watches never have to be
// trusted over a gap.
type session struct {
	config *Config
	conn   *zk.Conn
	// ready is closed when it begins, over when it has ended; why says why.
	ready, over chan struct{}

	// large has one place: for a list of more than mostValue bytes, until it is handled.
	large chan struct{}

	mu    sync.Mutex
	begun bool
	ended bool
	why   error
	wires []net.Conn
	// changed are paths of nodes that have changed, told how many bytes these have.
	changed map[string]bool
	told    int
	wake    chan struct{}
}

// mostTold is how many bytes of paths may wait to be looked at.
const mostTold = 16 << 20

var errEvents = errors.New("more has changed than can be kept; all is read again")

var errComes = errors.New("it comes and goes too often to be read")

var errSilent = errors.New("no session within the session timeout")

func newSession(c *Config) *session {
	return &session{
		config: c, ready: make(chan struct{}), over: make(chan struct{}), large: make(chan struct{}, 1),
		wake: make(chan struct{}, 1), changed: map[string]bool{},
	}
}

// open begins one. close must be called.
func open(ctx context.Context, c *Config) (*session, error) {
	s := newSession(c)
	conn, _, err := zk.Connect(c.Servers, c.Session, zk.WithLogger(quiet{s}), zk.WithLogInfo(false), zk.WithDialer(s.dial), zk.WithEventCallback(s.event),
		zk.WithMaxBufferSize(c.Limits.AnswerBytes))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	late := time.NewTimer(c.Session)
	defer late.Stop()
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = s.reason(errSilent)
	case <-s.over:
		err = s.reason(errSilent)
	case <-s.ready:
		if c.Username != "" {
			if err = conn.AddAuth("digest", []byte(c.Username+":"+c.Password)); err != nil {
				err = fmt.Errorf("authentication: %w", err)
			}
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// dial is the library's dialer.
func (s *session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout}
	var c net.Conn
	var err error
	if s.config.TLS.Enabled {
		var files *tls.Config
		if files, err = s.config.TLS.config(address); err == nil {
			c, err = tls.DialWithDialer(d, network, address, files)
		}
	} else {
		c, err = d.Dial(network, address)
	}
	if err != nil {
		s.note(err)
		return nil, err
	}
	w := newWire(c, s.config.Limits.AnswerBytes)
	w.large = s.room
	c = w
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.wires = append(s.wires, c)
	return c, nil
}

// event is the library's: of the session, or of a node that is watched.
func (s *session) event(e zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Type != zk.EventSession:
		if !s.changed[e.Path] {
			s.changed[e.Path] = true
			s.told += len(e.Path)
		}
		if s.told > mostTold {
			s.end(errEvents)
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	case e.State == zk.StateHasSession && !s.begun:
		s.begun, s.why = true, nil
		close(s.ready)
	case e.State == zk.StateDisconnected && s.begun, e.State == zk.StateExpired, e.State == zk.StateAuthFailed:
		s.end(fmt.Errorf("the session is over: %s", e.State))
	}
}

// end notes that it is over; mu is held.
func (s *session) end(why error) {
	if s.ended {
		return
	}
	if s.ended = true; s.why == nil {
		s.why = why
	}
	close(s.over)
}

// note keeps why a connection failed.
func (s *session) note(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.why = why
	}
}

// reason is why it has ended, as far as that is known.
func (s *session) reason(otherwise error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		return s.why
	}
	return otherwise
}

// news are paths of nodes that have changed since it was asked last.
func (s *session) news() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.changed
	s.changed, s.told = map[string]bool{}, 0
	return all
}

// room waits until there is room for a large list; done makes room when one was handled.
func (s *session) room() error {
	select {
	case s.large <- struct{}{}:
		return nil
	case <-s.over:
		return net.ErrClosed
	}
}

func (s *session) done(r found) {
	n := headBytes + 4 + statBytes
	for _, child := range r.children {
		n += 4 + len(child)
	}
	if n > mostValue {
		<-s.large
	}
}

// close ends it and its connections. It takes a second at most.
func (s *session) close() {
	s.mu.Lock()
	s.end(net.ErrClosed)
	wires := s.wires
	s.mu.Unlock()
	closing := make(chan struct{})
	go func() { defer close(closing); s.conn.Close() }()
	select { // a server that answers forgets the session at once
	case <-closing:
	case <-time.After(500 * time.Millisecond):
	}
	for _, c := range wires {
		_ = c.Close()
	}
	<-closing
}

// Printf hears what the library says: the last of it says why a connection has failed.
func (q quiet) Printf(format string, args ...any) { q.of.note(fmt.Errorf(format, args...)) }

type quiet struct{ of *session }

// target is a node whose children, or whose value, are read.
type target struct {
	path  string
	value bool
}

// found is what was read of a target, while it is watched.
type found struct {
	target
	children []string
	data     []byte
	// missing: there is no such node; its coming is watched.
	missing bool
	// plain: it was not asked to be watched.
	plain bool
	err   error
	// number is the read's.
	number int
}

// again reads a target that is watched already: the library would keep each further watch.
func (s *session) again(t target) found {
	f := found{target: t, plain: true}
	if t.value {
		f.data, _, f.err = s.conn.Get(t.path)
	} else {
		f.children, _, f.err = s.conn.Children(t.path)
	}
	if errors.Is(f.err, zk.ErrNoNode) {
		f.missing, f.err = true, nil
	}
	return f
}

// read reads a target, and has its changes told. It blocks until there is an answer, or the session
// is over.
func (s *session) read(t target) found {
	f := found{target: t}
	for range 4 { // it may come and go meanwhile
		if t.value {
			f.data, _, _, f.err = s.conn.GetW(t.path)
		} else {
			f.children, _, _, f.err = s.conn.ChildrenW(t.path)
		}
		if !errors.Is(f.err, zk.ErrNoNode) {
			return f
		}
		var there bool
		if there, _, _, f.err = s.conn.ExistsW(t.path); f.err != nil {
			return f
		}
		if !there {
			f.missing = true
			return f
		}
	}
	f.err = errComes
	return f
}

// refused reports whether an error is of a node alone: it may not be read, or can't be. All others
// end a session.
func refused(err error) bool {
	for _, of := range []error{
		zk.ErrNoAuth, zk.ErrUnknown, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrBadVersion,
		zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
		zk.ErrInvalidACL, zk.ErrNothing, errComes,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return err != nil && strings.HasPrefix(err.Error(), unknown)
}

// unknown begins the library's errors of codes that it doesn't know, tooLarge among them.
const unknown = "unknown error: "
