//go:build wasip1

package sdk

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"os"
	"runtime"
	"syscall"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Serve runs a plugin over standard input and output, and does not return: the module ends with the
// session.
func Serve(d Declaration) {
	p := d.declare()
	if err := Run(context.Background(), d, newStdio()); err != nil {
		_, _ = os.Stderr.WriteString("plugin " + p.Name + ": " + err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

// stdio carries frames, each after its length as an unsigned 32-bit little-endian number.
type stdio struct {
	in  *bufio.Reader
	out io.Writer
	// blocks: reading blocks the whole module, as its host can't do otherwise.
	blocks bool
}

// newStdio makes reading wait in Go's scheduler: a module has one thread, and only when all its
// goroutines wait does it wait too, for input or the next timer, whichever is first.
func newStdio() session.Carrier {
	blocks := syscall.SetNonblock(0, true) != nil
	return &stdio{in: bufio.NewReaderSize(os.NewFile(0, "stdin"), 64<<10), out: os.NewFile(1, "stdout"), blocks: blocks}
}

func (s *stdio) Send(frame []byte) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	_, err := s.out.Write(append(b, frame...))
	return err
}

// Recv returns the next frame.
func (s *stdio) Recv() ([]byte, error) {
	if s.blocks && s.in.Buffered() == 0 {
		letOthers()
	}
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > session.MaxMessage {
		return nil, text.Error("a frame of ", n, " bytes: ", session.ErrTooLarge)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(s.in, frame)
	return frame, err
}

// letOthers lets all that can still work and write do so before the module blocks; what waits for a
// timer waits for the next message. The scheduler takes one that yielded when nothing else can run,
// but every 61st time in any case.
func letOthers() {
	const yields = 128
	for range yields {
		runtime.Gosched()
	}
}

// Close has nothing to close: the module ends with the session.
func (s *stdio) Close() error { return nil }
