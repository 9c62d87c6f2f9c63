package budget

import (
	"fmt"
	"math"
	"sync"

	"google.golang.org/grpc/codes"
)

// Unfinished is the account of messages that have begun to come and aren't complete: nothing can be
// said of them yet, and they take memory.
type Unfinished struct {
	limits Limits

	mu    sync.Mutex
	peers map[string]int
	total int
}

// NewUnfinished returns an account that is empty.
func NewUnfinished(l Limits) *Unfinished { return &Unfinished{limits: l, peers: map[string]int{}} }

// Add notes that of a peer so many bytes more, or fewer, have come.
func (u *Unfinished) Add(key string, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total += bytes
	if u.peers[key] += bytes; u.peers[key] == 0 {
		delete(u.peers, key)
	}
}

// Sum returns how many bytes there are.
func (u *Unfinished) Sum() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.total
}

// Check says what is too much: of the peer, or of all; all reports which.
func (u *Unfinished) Check(key string) (all bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	const less = "send messages one after the other"
	switch bytes := u.peers[key]; {
	case over(bytes, u.limits.Peer.Unfinished):
		return false, exceeds(codes.ResourceExhausted, "maxUnfinishedBytesPerPeer", u.limits.Peer.Unfinished,
			fmt.Sprintf("the messages of %s that aren't complete take %d bytes", key, bytes), less)
	case over(u.total, u.limits.Total.Unfinished):
		return true, exceeds(codes.ResourceExhausted, "maxUnfinishedBytes", u.limits.Total.Unfinished,
			fmt.Sprintf("the messages of all clients that aren't complete take %d bytes", u.total), less)
	}
	return false, nil
}

// Within returns limits that fit a process that may use so much memory: messages that aren't
// complete take a quarter of it at most, those of one peer an eighth, and one message is always let
// in. 0: no bound.
func (l Limits) Within(memory uint64) Limits {
	if memory == 0 {
		return l
	}
	fit := func(limit *int, most uint64) {
		if bytes := max(int(min(most, math.MaxInt)), 2*l.Stream.RequestBytes); *limit == 0 || *limit > bytes {
			*limit = bytes
		}
	}
	fit(&l.Peer.Unfinished, memory/8)
	fit(&l.Total.Unfinished, memory/4)
	return l
}
