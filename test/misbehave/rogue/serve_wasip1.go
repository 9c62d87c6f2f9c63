//go:build wasip1

package main

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

func name() string { return strings.TrimSuffix(os.Args[0], ".wasm") }

func serve(f func(context.Context, session.Carrier) error) error {
	if err := syscall.SetNonblock(0, true); err != nil {
		return err
	}
	return f(context.Background(), frames{os.NewFile(0, "stdin")})
}

// frames are a session.Carrier over standard input and output; what it sends is not looked at.
type frames struct{ in io.Reader }

func (s frames) Send(frame []byte) error {
	_, err := os.Stdout.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

func (s frames) Recv() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.LittleEndian.Uint32(length[:]))
	_, err := io.ReadFull(s.in, frame)
	return frame, err
}

func (s frames) Close() error { return nil }
