package mesh

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Config is the entry's config.
type Config struct {
	kube.Access
	// MeshConfig and NetworksConfig are empty where no file is named; the null device is a file without text.
	MeshConfig, NetworksConfig string
	// ConfigMap and SharedConfigMap are names of ConfigMaps in Namespace; empty: there is none.
	ConfigMap, SharedConfigMap, Namespace string
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
	kube.Access
	MeshConfig      string `json:"meshConfig"`
	NetworksConfig  string `json:"networksConfig"`
	ConfigMap       string `json:"configMap"`
	SharedConfigMap string `json:"sharedConfigMap"`
	Namespace       string `json:"namespace"`
	Settle          string `json:"settle"`
	Rescan          string `json:"rescan"`
}

// parse reads a config and checks it.
func parse(config []byte) (Config, error) {
	s := settings{Access: kube.DefaultAccess(), Namespace: "istio-system"}
	if err := strict.Decode(config, &s); err != nil {
		return Config{}, err
	}
	c := Config{Access: s.Access, ConfigMap: s.ConfigMap, SharedConfigMap: s.SharedConfigMap, Namespace: s.Namespace}
	err := c.Check()
	if err != nil {
		return c, err
	}
	for _, n := range []struct{ field, name string }{{"configMap", c.ConfigMap}, {"sharedConfigMap", c.SharedConfigMap}, {"namespace", c.Namespace}} {
		if problems := validation.IsDNS1123Subdomain(n.name); n.name != "" && len(problems) > 0 {
			return c, strict.Errorf(n.field, "%q is no name: %s", n.name, problems[0])
		}
	}
	if c.Namespace == "" {
		return c, strict.Errorf("namespace", "is empty")
	}
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

// file returns a path to watch.
func file(field, path string) (string, error) {
	if path == "" || path == os.DevNull {
		return path, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", strict.Errorf(field, "%s is a directory; name the file in it", path)
	}
	return filepath.Clean(path), nil
}

// configMaps returns the names of the ConfigMaps that settings are read from.
func (c *Config) configMaps() (names []string) {
	for _, name := range []string{c.SharedConfigMap, c.ConfigMap} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
