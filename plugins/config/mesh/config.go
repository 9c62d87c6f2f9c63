package mesh

import (
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's config.
type Config struct {
	// MeshConfig and NetworksConfig are empty where there is none.
	MeshConfig, NetworksConfig string
	// Settle is how long a file must be quiet before it is read.
	Settle time.Duration
	// Rescan is how often the files are looked at even without an event; 0: never.
	Rescan time.Duration
}

const (
	defaultSettle = 20 * time.Millisecond
	defaultRescan = time.Minute
)

// settings is Config as it is written.
type settings struct {
	MeshConfig     string `json:"meshConfig"`
	NetworksConfig string `json:"networksConfig"`
	Settle         string `json:"settle"`
	Rescan         string `json:"rescan"`
}

// parse reads a config and checks it.
func parse(config []byte) (Config, error) {
	var s settings
	if err := strict.Decode(config, &s); err != nil {
		return Config{}, err
	}
	var c Config
	var err error
	if c.MeshConfig, err = file("meshConfig", s.MeshConfig); err != nil {
		return c, err
	}
	if c.NetworksConfig, err = file("networksConfig", s.NetworksConfig); err != nil {
		return c, err
	}
	if c.Settle, err = strict.Duration("settle", s.Settle, defaultSettle); err != nil {
		return c, err
	}
	if c.Settle == 0 {
		return c, strict.Errorf("settle", "must be above 0, such as 1ms")
	}
	c.Rescan, err = strict.Duration("rescan", s.Rescan, defaultRescan)
	return c, err
}

// file returns a path to watch; the null device is the usual way to say that there is none.
func file(field, path string) (string, error) {
	if path == "" || path == os.DevNull {
		return "", nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", strict.Errorf(field, "%s is a directory; name the file in it", path)
	}
	return filepath.Clean(path), nil
}
