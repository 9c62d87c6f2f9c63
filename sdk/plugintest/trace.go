package plugintest

import (
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// traceLines is how many of the last messages a failure shows.
const traceLines = 30

// trace is a carrier that remembers the last messages in one line each, without anything that may
// be secret.
type trace struct {
	session.Carrier
	send sync.Mutex

	mu    sync.Mutex
	lines []string
	left  int
	pongs map[uint64]bool
}

func newTrace(c session.Carrier) *trace { return &trace{Carrier: c, pongs: map[uint64]bool{}} }

func (t *trace) Send(frame []byte) error {
	t.add(Describe(true, frame))
	t.send.Lock()
	defer t.send.Unlock()
	return t.Carrier.Send(frame)
}

func (t *trace) Recv() ([]byte, error) {
	frame, err := t.Carrier.Recv()
	if err != nil {
		t.add("the session ended: " + err.Error())
		return frame, err
	}
	t.add(Describe(false, frame))
	var m pb.FromPlugin
	if m.Unmarshal(frame) == nil && m.Pong != nil {
		t.mu.Lock()
		t.pongs[m.Pong.Id] = true
		t.mu.Unlock()
	}
	return frame, nil
}

func (t *trace) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == traceLines {
		t.lines, t.left = t.lines[1:], t.left+1
	}
	t.lines = append(t.lines, line)
}

// last returns the last messages, oldest first, and how many came before them.
func (t *trace) last() (lines []string, before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...), t.left
}

func (t *trace) ponged(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pongs[id]
}
