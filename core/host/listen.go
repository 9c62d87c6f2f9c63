package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// waiting is how many bytes of datagrams wait in a socket while no process reads it: what comes
// while one ends and the next begins. The kernel gives less where it has a limit
// (net.core.rmem_max) and the core may not pass it (CAP_NET_ADMIN).
const waiting = 8 << 20

// sockets are what the core listens on for plugins, by the names of their entries and by address.
// They are open as long as their entry is there, whatever becomes of its processes.
type sockets struct {
	mu   sync.Mutex
	open map[string]map[manifest.Listen]*os.File
}

// of returns the sockets of an entry, in its order. Those that it had and doesn't ask for any more
// are closed.
func (s *sockets) of(e *manifest.Entry) ([]process.Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.open[e.Name]
	if len(had)+len(e.Listen) == 0 {
		return nil, nil
	}
	has := map[manifest.Listen]*os.File{}
	for _, l := range e.Listen {
		if f := had[l]; f != nil {
			has[l] = f
			delete(had, l)
		}
	}
	closeAll(had)
	if s.open == nil {
		s.open = map[string]map[manifest.Listen]*os.File{}
	}
	s.open[e.Name] = has
	var out []process.Socket
	for _, l := range e.Listen {
		if has[l] == nil {
			f, err := listen(l)
			if err != nil {
				return nil, fmt.Errorf("listen (%s): %w", e.Keys["listen"], err)
			}
			has[l] = f
		}
		out = append(out, process.Socket{Address: string(l), File: has[l]})
	}
	return out, nil
}

// forget closes what an entry had.
func (s *sockets) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	closeAll(s.open[name])
	delete(s.open, name)
}

// close closes all.
func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, files := range s.open {
		closeAll(files)
	}
	s.open = nil
}

func closeAll(files map[manifest.Listen]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func listen(l manifest.Listen) (*os.File, error) {
	lc := net.ListenConfig{}
	if l.Network() == "tcp" {
		made, err := lc.Listen(context.Background(), "tcp", l.Address())
		if err != nil {
			return nil, err
		}
		defer func() { _ = made.Close() }()
		return made.(*net.TCPListener).File()
	}
	made, err := lc.ListenPacket(context.Background(), "udp", l.Address())
	if err != nil {
		return nil, err
	}
	udp := made.(*net.UDPConn)
	defer func() { _ = udp.Close() }()
	roomFor(udp, waiting)
	return udp.File()
}

// Unlisten closes what the core listens on for an entry that has been removed.
func (h *Host) Unlisten(name string) { h.sockets.forget(name) }
