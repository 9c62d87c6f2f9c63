package main

import (
	"fmt"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/plugins/validation/files"
)

// setText returns the file that says what to run, and its name: that of --plugins, or the built-in one.
func setText(in settings.Inputs) (name string, text []byte, err error) {
	if in.Plugins == "" {
		return "plugins.yaml (built in)", coxswain.DefaultSet(), nil
	}
	text, err = files.Read(in.Plugins)
	if err != nil {
		return "", nil, fmt.Errorf("plugins: %w", err)
	}
	return in.Plugins, text, nil
}

// set returns the plugins that a text names, with the config that flags stand for.
func set(in settings.Inputs, name string, text []byte) (*host.Set, error) {
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
