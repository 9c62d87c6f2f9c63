package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/host"
)

// set returns the plugins to run: those of the file that --plugins names, or the built-in ones, with the config that flags stand for.
func set(in settings.Inputs) (*host.Set, error) {
	name, text := "plugins.yaml (built in)", coxswain.DefaultSet()
	if in.Plugins != "" {
		b, err := os.ReadFile(in.Plugins)
		if err != nil {
			return nil, fmt.Errorf("plugins: %w", err)
		}
		name, text = in.Plugins, b
	}
	s, err := host.Parse(name, text)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ setting, path, builtin, field string }{
		{"configDir", in.ConfigDir, "config/file", "dir"},
		{"meshConfig", in.MeshConfig, "config/mesh", "meshConfig"},
		{"networksConfig", in.NetworksConfig, "config/mesh", "networksConfig"},
	} {
		if f.path == "" {
			continue
		}
		if err := configure(s, f.setting, f.path, f.builtin, f.field); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

// configure sets a field of the config of the set's only entry that runs a built-in plugin.
func configure(s *host.Set, setting, path, builtin, field string) error {
	entries := s.Builtins(builtin)
	switch len(entries) {
	case 0:
		return fmt.Errorf("--%s has no one to go to: no plugin is `builtin: %s`", setting, builtin)
	case 1:
	default:
		return fmt.Errorf("--%s could go to %s or %s: both are `builtin: %s`; write the path into their config",
			setting, entries[0].Name, entries[1].Name, builtin)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("--%s: %w", setting, err)
	}
	return entries[0].SetConfig(map[string]any{field: absolute})
}
