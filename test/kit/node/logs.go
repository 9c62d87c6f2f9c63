package node

import (
	"bytes"
	"sync"
	"time"
)

// kept is how much of a container's output is kept, in bytes.
const kept = 8 << 20

// logs are the lines that a container has said.
type logs struct {
	mu    sync.Mutex
	lines []line
	size  int
	first int // the number of the first line that is kept
	over  bool
	more  chan struct{} // closed when there are more
}

type line struct {
	at   time.Time
	text string // with its end
}

func newLogs() *logs { return &logs{more: make(chan struct{})} }

func (l *logs) add(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line{time.Now(), string(text)})
	for l.size += len(text); l.size > kept; l.first++ {
		l.size -= len(l.lines[0].text)
		l.lines = l.lines[1:]
	}
	l.wake()
}

func (l *logs) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// end says that nothing more comes.
func (l *logs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wake()
}

// from returns the lines from a number on, the number after them, whether nothing more comes, and
// what is closed once there is more.
func (l *logs) from(number int) (all []line, next int, over bool, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := min(max(number-l.first, 0), len(l.lines))
	return l.lines[at:], l.first + len(l.lines), l.over, l.more
}

// writer cuts what a process writes into lines.
func (l *logs) writer() *splitter { return &splitter{to: l} }

type splitter struct {
	to   *logs
	rest []byte
}

func (s *splitter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		at := bytes.IndexByte(b, '\n')
		if at < 0 {
			break
		}
		s.to.add(append(s.rest, b[:at+1]...))
		s.rest, b = nil, b[at+1:]
	}
	if s.rest = append(s.rest, b...); len(s.rest) > 1<<16 {
		s.to.add(s.rest)
		s.rest = nil
	}
	return n, nil
}
