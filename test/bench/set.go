package main

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

// writeSet writes what the control plane runs: the default plugins, but that files settle as fast
// as for the other servers, and what is added. With profile they may see where profiles go.
func writeSet(defaults, path string, profile bool, more ...map[string]any) error {
	b, err := os.ReadFile(defaults)
	if err != nil {
		return err
	}
	var set struct {
		Plugins []map[string]any `yaml:"plugins"`
	}
	if err := yaml.Unmarshal(b, &set); err != nil {
		return fmt.Errorf("%s: %w", defaults, err)
	}
	for _, p := range set.Plugins {
		if p["builtin"] == "config/file" {
			p["config"] = map[string]any{"settle": "1ms"}
		}
		if profile {
			p["allow"] = map[string]any{"env": []string{"COXSWAIN_PROFILE"}}
		}
	}
	set.Plugins = append(set.Plugins, more...)
	if b, err = yaml.Marshal(set); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
