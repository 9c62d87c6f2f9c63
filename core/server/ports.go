package server

import (
	"fmt"
	"slices"
	"sync"
)

// ports are the xDS ports that are to be opened: before all are, nobody can be served.
type ports struct {
	mu     sync.Mutex
	closed []string
}

func newPorts(cfg *Config) *ports {
	p := &ports{}
	if cfg.GRPCAddr != "" {
		p.closed = append(p.closed, "grpc")
	}
	if cfg.SecureGRPCAddr != "" {
		p.closed = append(p.closed, "secureGRPC")
	}
	return p
}

// opened notes that a port listens.
func (p *ports) opened(port string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = slices.DeleteFunc(p.closed, func(name string) bool { return name == port })
}

// ready returns why proxies can't connect; none: they can.
func (p *ports) ready() (reasons []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.closed {
		reasons = append(reasons, fmt.Sprintf("port %s is not open yet", name))
	}
	return reasons
}
