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
	// MeshConfig and NetworksConfig are empty where no file is named; the null device is a file
	// without text.
	MeshConfig     string `json:"meshConfig" doc:"A file with a MeshConfig, in place of the ConfigMap's; /dev/null is an empty one."`
	NetworksConfig string `json:"networksConfig" doc:"A file with a MeshNetworks, in place of the ConfigMap's; /dev/null is an empty one."`
	// ConfigMap and SharedConfigMap are names of ConfigMaps in Namespace; empty: there is none.
	ConfigMap       string        `json:"configMap" doc:"A ConfigMap with a MeshConfig under mesh and a MeshNetworks under meshNetworks; none without, and no API server is asked."`
	SharedConfigMap string        `json:"sharedConfigMap" doc:"A ConfigMap like it that is applied first; of networks, it counts alone."`
	Namespace       string        `json:"namespace" doc:"Where the ConfigMaps are."`
	Settle          time.Duration `json:"settle" min:"1ms" doc:"How long a file must be quiet before it is read."`
	Rescan          time.Duration `json:"rescan" doc:"How often the files are looked at even without an event; 0s: never."`
}

// usual is what counts where the config says nothing.
func usual() Config {
	return Config{
		Access: kube.DefaultAccess(), Namespace: "istio-system", Settle: 20 * time.Millisecond, Rescan: time.Minute,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	err := c.Access.Check()
	if err != nil {
		return err
	}
	for _, n := range []struct{ field, name string }{{"configMap", c.ConfigMap}, {"sharedConfigMap", c.SharedConfigMap}, {"namespace", c.Namespace}} {
		if problems := validation.IsDNS1123Subdomain(n.name); n.name != "" && len(problems) > 0 {
			return strict.Errorf(n.field, "%q is no name: %s", n.name, problems[0])
		}
	}
	if c.Namespace == "" {
		return strict.Errorf("namespace", "is empty")
	}
	if c.MeshConfig, err = file("meshConfig", c.MeshConfig); err != nil {
		return err
	}
	c.NetworksConfig, err = file("networksConfig", c.NetworksConfig)
	return err
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
