package sdk

import (
	"context"
	"errors"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// sessionKey is where an author's ctx has the session.
type sessionKey struct{}

// sessionOf returns the session that a ctx belongs to.
func sessionOf(ctx context.Context) (*pluginSession, error) {
	ps, ok := ctx.Value(sessionKey{}).(*pluginSession)
	if !ok {
		return nil, errors.New("this ctx is not the one that the SDK gave to the plugin, nor made from it")
	}
	return ps, nil
}

// questions are what a plugin has asked the core, or a WASM plugin its runner, by id. One that asks
// waits alone; the rest of the plugin goes on.
type questions struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]chan *pb.FromCore
}

// answer hands an answer to whoever waits for it. It is false for all other messages.
func (q *questions) answer(m *pb.FromCore) bool {
	var id uint64
	switch {
	case m.Got != nil:
		id = m.Got.Id
	case m.Fetched != nil:
		id = m.Fetched.Id
	case m.Stored != nil:
		id = m.Stored.Id
	default:
		return false
	}
	q.mu.Lock()
	c := q.open[id]
	delete(q.open, id)
	q.mu.Unlock()
	if c != nil {
		c <- m
	}
	return true
}

func (q *questions) begin() (uint64, <-chan *pb.FromCore) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[uint64]chan *pb.FromCore{}
	}
	q.last++
	c := make(chan *pb.FromCore, 1)
	q.open[q.last] = c
	return q.last, c
}

func (q *questions) end(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
}

// ask sends the question that make makes for an id, and waits for its answer.
func (ps *pluginSession) ask(ctx context.Context, make func(id uint64) *pb.FromPlugin) (*pb.FromCore, error) {
	id, answer := ps.asked.begin()
	defer ps.asked.end(id)
	if err := ps.send(ctx, make(id)); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-ps.link.Done():
		return nil, ps.link.Err()
	}
}
