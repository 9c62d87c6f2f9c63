// Package spiffe is the built-in plugin config/spiffe: trust bundles of other trust domains, which
// their SPIFFE bundle endpoints publish or the mesh's settings name.
//
// wants.go says what is asked for, source.go gets it; package polling keeps it fresh.
package spiffe

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns config/spiffe.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name: "config/spiffe", Version: "1", Reads: []string{state.Mesh}, Publishes: []string{bundle.Table},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) { return New(c) }),
	}
}

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Endpoints []Endpoint     `json:"endpoints" doc:"SPIFFE bundle endpoints of other trust domains."`
	Refresh   time.Duration  `json:"refresh" min:"1ms" doc:"How old a bundle may become until it is fetched again."`
	Retry     time.Duration  `json:"retry" min:"1ms" doc:"How long to wait after a failure; each further one doubles it."`
	MaxRetry  time.Duration  `json:"maxRetry" min:"1ms" doc:"The longest wait after failures."`
	Timeout   time.Duration  `json:"timeout" min:"1ms" doc:"How long a fetch may take."`
	MaxBytes  int64          `json:"maxBytes" min:"1" max:"917504" doc:"The largest answer that is taken."`
	CAFile    string         `json:"caFile" doc:"PEM file with roots that endpoints are trusted by, besides the system's."`
	Blocked   []netip.Prefix `json:"blockedCIDRs" doc:"Addresses that are never connected to."`
	LinkLocal bool           `json:"allowLinkLocal" doc:"Whether addresses of the link itself (169.254.0.0/16, fe80::/10) may be connected to."`
}

// Endpoint is where a trust domain publishes its bundle.
type Endpoint struct {
	TrustDomain string `json:"trustDomain" required:"true" doc:"The trust domain, such as other.example."`
	URL         string `json:"url" required:"true" doc:"Where its bundle is, by HTTPS."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Refresh: 5 * time.Minute, Retry: time.Second, MaxRetry: 5 * time.Minute, Timeout: 5 * time.Second,
		MaxBytes: 512 << 10,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for i, e := range c.Endpoints {
		at := strict.At("endpoints", i)
		if _, err := spiffeid.TrustDomainFromString(e.TrustDomain); err != nil {
			return strict.Errorf(at+".trustDomain", "%q is no trust domain: %v", e.TrustDomain, err)
		}
		if err := checkURL(e.URL); err != nil {
			return strict.Errorf(at+".url", "%v", err)
		}
	}
	return nil
}

// checkURL reports, as an error, why a bundle can't be fetched from a URL. Whoever could change it
// on the way could be anybody in the mesh, so that it must be HTTPS. Source: SPIFFE Federation,
// section 5.2.1.
func checkURL(text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "https" {
		return fmt.Errorf("%q is no URL of HTTPS", text)
	}
	return nil
}
