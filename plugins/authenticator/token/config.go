package token

import (
	"path/filepath"
	"time"
)

// Config is the entry's config.
type Config struct {
	File   string        `json:"file" required:"true" doc:"A YAML file with tokens and whose they are."`
	Settle time.Duration `json:"settle" min:"1ms" doc:"How long the file must be quiet before it is read."`
	Rescan time.Duration `json:"rescan" doc:"How often the file is looked at even without an event; 0s: never."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Settle: 20 * time.Millisecond, Rescan: time.Minute}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	c.File = filepath.Clean(c.File)
	return nil
}
