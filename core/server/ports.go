package server

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// ports are those that are open, by name. Before those of xDS are, nobody can be served.
type ports struct {
	xds []string // to be opened
	// pending says of a secure port whose certificate a plugin makes whether it has one, and else
	// why it has none yet (empty: nobody makes one); nil: there is no such port.
	pending func() (made bool, why string)
	// secure: that port is for xDS, too.
	secure bool

	// admin: the admin socket is open. Whoever waits for the control plane may have something to
	// say to it.
	admin atomic.Bool

	// told is Config.Listening.
	told func(port string, at net.Addr)

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

// newPorts returns those of a config, none of which is open; by is nil where no plugin makes a
// certificate.
func newPorts(cfg *Config, by *issued) *ports {
	p := &ports{told: cfg.Listening, open: map[string]string{}}
	if by != nil {
		p.pending = by.pending
	}
	if cfg.plaintext() {
		p.xds = append(p.xds, "grpc")
	}
	if cfg.SecureGRPCAddr != "" && cfg.TLS.named() {
		p.xds = append(p.xds, "secureGRPC")
	}
	if cfg.TLS.Webhooks.Address != "" {
		p.xds = append(p.xds, "https")
	}
	p.secure = cfg.SecureGRPCAddr != "" && authenticates(cfg.Set)
	return p
}

// listening notes that a port is open.
func (p *ports) listening(port string, at net.Addr) {
	p.mu.Lock()
	p.open[port] = at.String()
	p.mu.Unlock()
	if p.told != nil {
		p.told(port, at)
	}
}

// opened notes that the admin socket is open.
func (p *ports) opened() { p.admin.Store(true) }

// addresses returns where the ports are that are open.
func (p *ports) addresses() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.open)
}

// ready returns why proxies can't connect, or operators; none: they can.
func (p *ports) ready() (reasons []string) {
	open, expected := p.addresses(), p.xds
	if !p.admin.Load() {
		reasons = append(reasons, "the admin socket is not open yet")
	}
	if p.pending != nil {
		made, why := p.pending()
		switch {
		case made && p.secure:
			expected = append(slices.Clip(expected), "secureGRPC")
		case why != "":
			reasons = append(reasons, why)
		}
	}
	for _, name := range expected {
		if open[name] == "" {
			reasons = append(reasons, fmt.Sprintf("port %s is not open yet", name))
		}
	}
	return reasons
}
