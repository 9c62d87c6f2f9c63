package manifest

import (
	"fmt"
	"net/netip"
	"strings"
)

// Listen is where the core listens for a plugin: udp://IP:PORT or tcp://IP:PORT.
type Listen string

// UnmarshalText reads one.
func (l *Listen) UnmarshalText(text []byte) error {
	network, address, ok := strings.Cut(string(text), "://")
	at, err := netip.ParseAddrPort(address)
	if !ok || network != "udp" && network != "tcp" || err != nil || at.Port() == 0 {
		return fmt.Errorf("want udp://IP:PORT or tcp://IP:PORT, such as udp://127.0.0.1:53, not `%s`", text)
	}
	*l = Listen(network + "://" + at.String())
	return nil
}

// Network is udp or tcp.
func (l Listen) Network() string {
	network, _, _ := strings.Cut(string(l), "://")
	return network
}

// Address is IP:PORT.
func (l Listen) Address() string {
	_, address, _ := strings.Cut(string(l), "://")
	return address
}

// listen checks where the core is to listen for an entry.
func (c *checker) listen(e *Entry) {
	if e.Listen == nil {
		return
	}
	at := e.Keys["listen"]
	switch {
	case e.Kind != "" && !e.Kind.Proto().Acts():
		c.fail(at, "`listen` is for controllers; of a %s plugin two may run at once", e.Kind)
	case e.Wasm != nil:
		c.fail(at, "`listen` is for `process` and `builtin`; a module has no sockets")
	case e.ForEach != nil:
		c.fail(at, "`listen` and `forEach` are given; the instances would share what they listen on")
	case e.Start == OnDemand:
		c.fail(at, "`listen` and `start: onDemand` are given; who listens is always wanted")
	}
	for _, l := range e.Listen {
		if l == "" {
			continue // said already
		}
		if first, twice := c.listens[l]; twice {
			c.fail(at, "the core listens on `%s` for line %d already", l, first.Line)
			continue
		}
		c.listens[l] = at
	}
}
