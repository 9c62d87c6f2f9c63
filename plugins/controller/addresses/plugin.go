// Package addresses is the built-in plugin controller/addresses: it gives addresses to hosts of ServiceEntries that have none, and writes them into their status.
//
// choose.go says which host has which address, as a pure function; controller.go writes what differs.
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
	IPv4 string `json:"ipv4"`
	IPv6 string `json:"ipv6"`
	// Namespace is that of the Lease by which replicas agree on who gives addresses, Lease how long it lasts.
	Namespace string `json:"namespace"`
	Lease     string `json:"lease"`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone"`

	lease  time.Duration
	ranges []netip.Prefix
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "ipv4": {"type": "string", "default": "240.240.0.0/16", "description": "Range of IPv4 addresses; empty: none are given."},
    "ipv6": {"type": "string", "default": "2001:2::/48", "description": "Range of IPv6 addresses; empty: none are given."},
    "namespace": {"type": "string", "minLength": 1, "default": "istio-system", "description": "The namespace of the Lease by which replicas agree on who gives addresses."},
    "lease": {"type": "string", "default": "30s", "description": "How long that Lease lasts: a replica that leads and can't renew it stops after half of it."},
    "alone": {"type": "boolean", "default": false, "description": "No other replica gives addresses: there is no Lease."}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{IPv4: "240.240.0.0/16", IPv6: "2001:2::/48", Namespace: "istio-system", Lease: lead.Duration.String()}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	if c.Namespace == "" {
		return c, strict.Errorf("namespace", "is empty")
	}
	var err error
	if c.lease, err = time.ParseDuration(c.Lease); err != nil || c.lease < lead.Shortest || c.lease > time.Hour {
		return c, strict.Errorf("lease", "%q is no duration between %s and an hour, such as 30s", c.Lease, lead.Shortest)
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
			return c, strict.Errorf(of.field, "%q is not a range of four such addresses or more", of.text)
		}
		c.ranges = append(c.ranges, p.Masked())
	}
	return c, nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/addresses",
		Version: "1",
		Reads:   []string{kinds.ServiceEntry},
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.Controller, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return sdk.ControllerFunc(c.run), nil
		}),
	}
}
