package reliability

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// patient is a raw connection whose client sends no more than the server's windows allow.
type patient struct {
	*raw
	mu      sync.Mutex
	changed *sync.Cond
	windows map[uint32]int // what may be sent more than at first, 0: of the connection
	gone    bool
}

// atFirst is how much a stream, and the connection, may send before the server opens their windows
// wider.
const atFirst = 65535

func newPatient(ctx context.Context, address string) (*patient, error) {
	r, err := newRaw(ctx, address, true)
	if err != nil {
		return nil, err
	}
	p := &patient{raw: r, windows: map[uint32]int{}}
	p.changed = sync.NewCond(&p.mu)
	_ = r.SetWriteDeadline(time.Time{})
	go p.listen(r.Conn)
	return p, r.WriteSettingsAck()
}

// listen follows what the server says of windows, until the connection ends.
func (p *patient) listen(conn net.Conn) {
	f := http2.NewFramer(nil, conn)
	for {
		frame, err := f.ReadFrame()
		p.mu.Lock()
		if u, ok := frame.(*http2.WindowUpdateFrame); ok && err == nil {
			p.windows[u.StreamID] += int(u.Increment)
		}
		p.gone = err != nil
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send opens a stream and sends some bytes on it. It returns how many it could.
func (p *patient) send(id uint32, b []byte) (sent int, err error) {
	if err := p.open(id, streamPath); err != nil {
		return 0, err
	}
	return p.more(id, b)
}

// more sends some bytes on a stream that is open. It returns how many it could.
func (p *patient) more(id uint32, b []byte) (sent int, err error) {
	for sent < len(b) {
		n := min(16<<10, len(b)-sent)
		if !p.may(id, n) {
			return sent, net.ErrClosed
		}
		if err := p.WriteData(id, false, b[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// may waits until so many bytes may be sent. It reports false if the connection ends before.
func (p *patient) may(id uint32, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.gone && (p.windows[id]+atFirst < n || p.windows[0]+atFirst < n) {
		p.changed.Wait()
	}
	p.windows[id] -= n
	p.windows[0] -= n
	return !p.gone
}
