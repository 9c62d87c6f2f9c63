package jwks

import (
	"net/netip"
	"time"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Refresh    time.Duration  `json:"refresh" min:"1ms" doc:"How old a key set may become until it is fetched again."`
	Retry      time.Duration  `json:"retry" min:"1ms" doc:"How long to wait after a failure; each further one doubles it."`
	MaxRetry   time.Duration  `json:"maxRetry" min:"1ms" doc:"The longest wait after failures."`
	Timeout    time.Duration  `json:"timeout" min:"1ms" doc:"How long a fetch may take where the rule doesn't say."`
	MaxBytes   int64          `json:"maxBytes" min:"1" doc:"The largest answer that is taken."`
	Concurrent int            `json:"concurrent" min:"1" doc:"How many sets are fetched at once."`
	CAFile     string         `json:"caFile" doc:"PEM file with roots that are trusted besides the system's."`
	Blocked    []netip.Prefix `json:"blockedCIDRs" doc:"Addresses that are never connected to."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Refresh: 20 * time.Minute, Retry: time.Second, MaxRetry: 5 * time.Minute, Timeout: 5 * time.Second,
		MaxBytes: 1 << 20, Concurrent: 8,
	}
}
