package server

import (
	"maps"
	"net"
	"os"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// listening are the ports that are open.
type listening struct {
	mu   sync.Mutex
	open map[string]string
}

// noting returns a func that keeps each port, and tells next, if there is one.
func (p *listening) noting(next func(string, net.Addr)) func(string, net.Addr) {
	return func(port string, at net.Addr) {
		p.mu.Lock()
		if p.open == nil {
			p.open = map[string]string{}
		}
		p.open[port] = at.String()
		p.mu.Unlock()
		if next != nil {
			next(port, at)
		}
	}
}

// which says which of several cores this is.
func (s *Server) which() api.Core {
	s.listening.mu.Lock()
	defer s.listening.mu.Unlock()
	return api.Core{PID: os.Getpid(), Ports: maps.Clone(s.listening.open), File: s.cfg.File}
}
