package jwks

import (
	"net/netip"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Refresh    time.Duration  `json:"refresh" min:"1ms" doc:"How old a key set may become until it is fetched again."`
	Retry      time.Duration  `json:"retry" min:"1ms" doc:"How long to wait after a failure; each further one doubles it."`
	MaxRetry   time.Duration  `json:"maxRetry" min:"1ms" doc:"The longest wait after failures."`
	Timeout    time.Duration  `json:"timeout" min:"1ms" doc:"How long a fetch may take where the rule doesn't say."`
	MaxTimeout time.Duration  `json:"maxTimeout" min:"1ms" doc:"The most that a rule may say."`
	MaxBytes   int64          `json:"maxBytes" min:"1" max:"917504" doc:"The largest answer that is taken."`
	Concurrent int            `json:"concurrent" min:"1" doc:"How many sets are fetched at once."`
	PerOwner   int            `json:"concurrentPerNamespace" min:"1" doc:"How many of them for the rules of one namespace."`
	MaxSets    int            `json:"maxPerNamespace" min:"1" doc:"How many sets are fetched for the rules of one namespace; those of the oldest rules count."`
	CAFile     string         `json:"caFile" doc:"PEM file with roots that are trusted besides the system's."`
	Blocked    []netip.Prefix `json:"blockedCIDRs" doc:"Addresses that are never connected to."`
	LinkLocal  bool           `json:"allowLinkLocal" doc:"Whether addresses of the link itself (169.254.0.0/16, fe80::/10) may be connected to."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Refresh: 20 * time.Minute, Retry: time.Second, MaxRetry: 5 * time.Minute, Timeout: 5 * time.Second,
		MaxTimeout: 10 * time.Second, MaxBytes: 256 << 10, Concurrent: 32, PerOwner: 4, MaxSets: 100,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Timeout > c.MaxTimeout {
		return strict.Errorf("timeout", "%s is more than maxTimeout, %s", c.Timeout, c.MaxTimeout)
	}
	return nil
}
