package session

import (
	"io"
	"sync"
)

// pipeFrames is how many frames a pipe holds before Send blocks.
const pipeFrames = 16

// Pipe returns two carriers in memory; what one sends the other receives. Closing either ends both;
// frames that were sent before can still be received by the other.
func Pipe() (Carrier, Carrier) {
	ab, ba := make(chan []byte, pipeFrames), make(chan []byte, pipeFrames)
	end := &pipeEnd{done: make(chan struct{})}
	return &pipe{in: ba, out: ab, end: end}, &pipe{in: ab, out: ba, end: end}
}

type pipe struct {
	in  <-chan []byte
	out chan<- []byte
	end *pipeEnd
}

type pipeEnd struct {
	once sync.Once
	done chan struct{}
}

func (p *pipe) Send(frame []byte) error {
	select {
	case <-p.end.done:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.out <- frame:
		return nil
	case <-p.end.done:
		return io.ErrClosedPipe
	}
}

func (p *pipe) Recv() ([]byte, error) {
	select {
	case frame := <-p.in:
		return frame, nil
	case <-p.end.done:
	}
	select {
	case frame := <-p.in:
		return frame, nil
	default:
		return nil, io.EOF
	}
}

func (p *pipe) Close() error {
	p.end.once.Do(func() { close(p.end.done) })
	return nil
}
