//go:build wasip1

package sdk

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Serve runs a plugin over standard input and output, and does not return: the module ends with the session.
func Serve(p Plugin) {
	if err := Run(context.Background(), p, newStdio(os.Stdin, os.Stdout)); err != nil {
		fmt.Fprintf(os.Stderr, "plugin %s: %v\n", p.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// yields is how often a reader lets others go first. The scheduler takes one that yielded when nothing else can run, but every 61st
// time in any case.
const yields = 128

// stdio carries frames, each after its length as an unsigned 32-bit little-endian number.
type stdio struct {
	in  *bufio.Reader
	out io.Writer
}

func newStdio(in io.Reader, out io.Writer) session.Carrier {
	return &stdio{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

func (s *stdio) Send(frame []byte) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	_, err := s.out.Write(append(b, frame...))
	return err
}

// Recv blocks the whole module while it waits for input: a guest has one thread. So all that can still work and write does so
// first; what waits for a timer waits for the next message.
func (s *stdio) Recv() ([]byte, error) {
	if s.in.Buffered() == 0 {
		for range yields {
			runtime.Gosched()
		}
	}
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > session.MaxMessage {
		return nil, fmt.Errorf("a frame of %d bytes: %w", n, session.ErrTooLarge)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(s.in, frame)
	return frame, err
}

// Close has nothing to close: the module ends with the session.
func (s *stdio) Close() error { return nil }
