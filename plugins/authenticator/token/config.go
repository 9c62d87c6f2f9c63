package token

import (
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's config.
type Config struct {
	// File holds the tokens.
	File string
	// Settle is how long the file must be quiet before it is read.
	Settle time.Duration
	// Rescan is how often the file is looked at even without an event; 0: never.
	Rescan time.Duration
}

const (
	defaultSettle = 20 * time.Millisecond
	defaultRescan = time.Minute
)

// parse reads a config and checks it.
func parse(config []byte) (Config, error) {
	var s struct {
		File   string `json:"file"`
		Settle string `json:"settle"`
		Rescan string `json:"rescan"`
	}
	var c Config
	err := strict.Decode(config, &s)
	if err != nil {
		return c, err
	}
	if s.File == "" {
		return c, strict.Errorf("file", "is missing: name the file with the tokens")
	}
	c.File = filepath.Clean(s.File)
	if c.Settle, err = strict.Duration("settle", s.Settle, defaultSettle); err != nil {
		return c, err
	}
	if c.Settle == 0 {
		return c, strict.Errorf("settle", "must be above 0, such as 1ms")
	}
	c.Rescan, err = strict.Duration("rescan", s.Rescan, defaultRescan)
	return c, err
}
