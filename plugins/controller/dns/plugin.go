// Package dns is the built-in plugin controller/dns: it answers DNS queries for services, by the
// same names and addresses that agents are given in their name tables, and asks other resolvers for
// all other names.
//
// names.go says which names there are and what they mean to whom, build.go makes them of rows,
// answer.go answers one query, upstream.go asks other resolvers, bounds.go bounds what clients may
// cost, and server.go reads the sockets.
package dns

import (
	"net/netip"
	"os"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/listen"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Domain    string   `json:"domain" min:"1" doc:"DNS domain of the cluster's services, by which short names and search domains are known."`
	Namespace string   `json:"namespace" doc:"The namespace of clients whose address no registry knows: they see what it sees, and may leave it out of names. Empty: they see what every namespace sees."`
	Search    []string `json:"search" doc:"More search domains of clients, beside NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN: a name of a service with one of them behind it is that service's."`
	Cluster   string   `json:"cluster" doc:"The cluster of the clients, where services have other addresses in other clusters."`
	Network   string   `json:"network" doc:"The network of the clients: endpoints of headless services in others are left out. Empty: none are."`
	Families  string   `json:"families" enum:"ipv4,ipv6,both,dual" doc:"Address families of the clients. both: a service that has addresses of both is answered with its first one's family; dual: with all."`

	TTL time.Duration `json:"ttl" min:"1s" max:"1h" doc:"How long clients may keep answers about services."`

	Upstreams  []string      `json:"upstreams" doc:"Resolvers that are asked about all other names: IP or IP:PORT. Empty: those of resolvConf."`
	ResolvConf string        `json:"resolvConf" doc:"File that names resolvers (resolv.conf(5)), read at the start; empty, and no upstreams: other names are refused."`
	Timeout    time.Duration `json:"timeout" min:"10ms" max:"30s" doc:"How long one resolver may take to answer; then the next one is asked."`
	Cache      int           `json:"cache" min:"0" max:"1000000" doc:"How many answers of other resolvers are kept, 4 KiB each at most; 0: none."`
	CacheFor   time.Duration `json:"cacheFor" min:"0s" max:"24h" doc:"How long one is kept at most, whatever its TTL."`

	Limits Limits `json:"limits" doc:"What clients may cost."`

	upstreams []netip.AddrPort
	families  dialing.Families
}

// Limits are what clients may cost.
type Limits struct {
	Rate        int `json:"queriesPerSecond" min:"1" max:"1000000" doc:"Queries by UDP that one address is answered in a second (IPv6: one /64); beyond that it is told to ask by TCP, and beyond twice that it is told nothing."`
	Forwarded   int `json:"forwarded" min:"1" max:"100000" doc:"Questions that other resolvers are being asked at once; further ones are answered with a failure."`
	Connections int `json:"connections" min:"1" max:"100000" doc:"Connections by TCP at once; of one address at most a tenth of that."`
}

func defaults() Config {
	return Config{
		Domain: "cluster.local", Families: "both", TTL: 30 * time.Second, ResolvConf: "/etc/resolv.conf", Timeout: 2 * time.Second,
		Cache: 10_000, CacheFor: 5 * time.Minute, Limits: Limits{Rate: 2000, Forwarded: 1000, Connections: 1000},
	}
}

// Check implements sdk.Checker.
func (c *Config) Check() error {
	c.families = map[string]dialing.Families{"ipv4": dialing.IPv4, "ipv6": dialing.IPv6, "both": dialing.Both, "dual": dialing.Dual}[c.Families]
	for i, text := range c.Upstreams {
		at, err := resolver(text)
		if err != nil {
			return strict.Errorf(strict.At("upstreams", i), "%q is neither IP nor IP:PORT", text)
		}
		c.upstreams = append(c.upstreams, at)
	}
	for i, s := range c.Search {
		if _, ok := mdns.IsDomainName(s); !ok || strings.Trim(s, ".") == "" {
			return strict.Errorf(strict.At("search", i), "%q is no domain", s)
		}
	}
	if _, ok := mdns.IsDomainName(c.Domain); !ok {
		return strict.Errorf("domain", "%q is no domain", c.Domain)
	}
	return nil
}

func resolver(text string) (netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(ip, 53), nil
	}
	return netip.ParseAddrPort(text)
}

// resolvers are those that are asked about other names.
func (c *Config) resolvers() ([]netip.AddrPort, error) {
	if len(c.upstreams) > 0 || c.ResolvConf == "" {
		return c.upstreams, nil
	}
	f, err := os.Open(c.ResolvConf)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	is, err := mdns.ClientConfigFromReader(f)
	if err != nil {
		return nil, err
	}
	var all []netip.AddrPort
	for _, s := range is.Servers {
		if ip, err := netip.ParseAddr(s); err == nil {
			all = append(all, netip.AddrPortFrom(ip, 53))
		}
	}
	return all, nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "controller/dns", Version: "1",
		Reads: []string{state.Services, state.ClusterServices, state.Endpoints, state.Workloads, state.Namespaces, state.Mesh},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return &controller{config: c, given: listen.Given}, nil
		}),
	}
}
