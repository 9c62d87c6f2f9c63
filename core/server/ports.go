package server

import (
	"fmt"
	"maps"
	"net"
	"sync"
)

// ports are those that are open, by name. Before those of xDS are, nobody can be served.
type ports struct {
	xds []string // to be opened
	// pending is why another port is not open yet; nil, and empty: there is none.
	pending func() string

	mu   sync.Mutex
	open map[string]string
}

// None is what GRPCAddr is where xDS in plain text is not served.
const None = "none"

// plaintext reports whether xDS is served in plain text, on a port of its own or on a shared one.
func (cfg *Config) plaintext() bool {
	return cfg.GRPCAddr != None && cfg.GRPCAddr+cfg.HTTPAddr != ""
}

// shares reports whether it is served on the HTTP port.
func (cfg *Config) shares() bool { return cfg.GRPCAddr == "" && cfg.HTTPAddr != "" }

func newPorts(cfg *Config) *ports {
	p := &ports{open: map[string]string{}}
	if cfg.plaintext() {
		p.xds = append(p.xds, "grpc")
	}
	if cfg.SecureGRPCAddr != "" && cfg.TLS.named() {
		p.xds = append(p.xds, "secureGRPC")
	}
	return p
}

// noting returns a func that keeps each port, and tells next, if there is one.
func (p *ports) noting(next func(string, net.Addr)) func(string, net.Addr) {
	return func(port string, at net.Addr) {
		p.mu.Lock()
		p.open[port] = at.String()
		p.mu.Unlock()
		if next != nil {
			next(port, at)
		}
	}
}

// addresses returns where the ports are that are open.
func (p *ports) addresses() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.open)
}

// ready returns why proxies can't connect; none: they can.
func (p *ports) ready() (reasons []string) {
	open := p.addresses()
	for _, name := range p.xds {
		if open[name] == "" {
			reasons = append(reasons, fmt.Sprintf("port %s is not open yet", name))
		}
	}
	if p.pending != nil {
		if why := p.pending(); why != "" {
			reasons = append(reasons, why)
		}
	}
	return reasons
}
