// Package addresses is the built-in plugin controller/addresses: it gives addresses to hosts of
// ServiceEntries that have none, and writes them into their status.
//
// choose.go says which host has which address, as a pure function; controller.go writes what
// differs.
package addresses

import (
	"net/netip"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// IPv4 and IPv6 are the ranges that addresses are chosen from; empty: none of that family.
	IPv4 string `json:"ipv4" doc:"Range of IPv4 addresses; empty: none are given."`
	IPv6 string `json:"ipv6" doc:"Range of IPv6 addresses; empty: none are given."`
	// Namespace is that of the Lease by which replicas agree on who gives addresses, Lease how long
	// it lasts.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Lease by which replicas agree on who gives addresses."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that Lease lasts: a replica that leads and can't renew it stops after half of it."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"No other replica gives addresses: there is no Lease."`

	ranges []netip.Prefix
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{IPv4: "240.240.0.0/16", IPv6: "2001:2::/48", Namespace: "istio-system", Lease: lead.Duration}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Namespace == "" {
		return strict.Errorf("namespace", "is empty")
	}
	for _, of := range []struct {
		field, text string
		is          func(netip.Addr) bool
	}{{"ipv4", c.IPv4, netip.Addr.Is4}, {"ipv6", c.IPv6, netip.Addr.Is6}} {
		if of.text == "" {
			continue
		}
		p, err := netip.ParsePrefix(of.text)
		if err != nil || !of.is(p.Addr()) || p.Addr().BitLen()-p.Bits() < 2 {
			return strict.Errorf(of.field, "%q is not a range of four such addresses or more", of.text)
		}
		c.ranges = append(c.ranges, p.Masked())
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/addresses",
		Version: "1",
		Reads:   []string{kinds.ServiceEntry},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return sdk.ControllerFunc(c.run), nil
		}),
	}
}
