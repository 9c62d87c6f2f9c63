//go:build wasip1

package sdk

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

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

func (s *stdio) Recv() ([]byte, error) {
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
