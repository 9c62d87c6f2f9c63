package jwks

import (
	"net/netip"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml, with its durations read.
type Config struct {
	Refresh, Retry, MaxRetry, Timeout time.Duration
	MaxBytes                          int64
	Concurrent                        int
	CAFile                            string
	// Blocked are addresses that are never connected to.
	Blocked []netip.Prefix
}

// written is the config as it is written.
type written struct {
	Refresh      string   `json:"refresh"`
	Retry        string   `json:"retry"`
	MaxRetry     string   `json:"maxRetry"`
	Timeout      string   `json:"timeout"`
	MaxBytes     int64    `json:"maxBytes"`
	Concurrent   int      `json:"concurrent"`
	CAFile       string   `json:"caFile"`
	BlockedCIDRs []string `json:"blockedCIDRs"`
}

// parse reads a config, fills in defaults and checks it. Errors are *sdk.FieldError.
func parse(config []byte) (Config, error) {
	w := written{Refresh: "20m", Retry: "1s", MaxRetry: "5m", Timeout: "5s", MaxBytes: 1 << 20, Concurrent: 8}
	if err := strict.Decode(config, &w); err != nil {
		return Config{}, err
	}
	out := Config{MaxBytes: w.MaxBytes, Concurrent: w.Concurrent, CAFile: w.CAFile}
	for _, f := range []struct {
		name, text string
		into       *time.Duration
	}{
		{"refresh", w.Refresh, &out.Refresh}, {"retry", w.Retry, &out.Retry},
		{"maxRetry", w.MaxRetry, &out.MaxRetry}, {"timeout", w.Timeout, &out.Timeout},
	} {
		d, err := time.ParseDuration(f.text)
		if err != nil || d <= 0 {
			return out, strict.Errorf(f.name, "%q is no duration above 0, such as 5s", f.text)
		}
		*f.into = d
	}
	if w.MaxBytes < 1 {
		return out, strict.Errorf("maxBytes", "%d is less than 1", w.MaxBytes)
	}
	if w.Concurrent < 1 {
		return out, strict.Errorf("concurrent", "%d is less than 1", w.Concurrent)
	}
	for i, c := range w.BlockedCIDRs {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return out, strict.Errorf(strict.At("blockedCIDRs", i), "%q is no CIDR, such as 10.0.0.0/8", c)
		}
		out.Blocked = append(out.Blocked, p)
	}
	return out, nil
}
