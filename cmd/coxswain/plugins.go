package main

import (
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

func pluginsCommand(p *program) *cobra.Command {
	c := listing(p, &cobra.Command{
		Use:   "plugins",
		Short: "Show the plugins of a running control plane, and how they are; change them",
		Example: `  coxswain plugins
  coxswain plugins --addr 127.0.0.1:8080 -o json
  coxswain plugins swap mine --process ./mine-v2 --dry-run`,
	}, "/debug/plugins", show.Plugins)
	c.AddCommand(pluginChanges(p)...)
	c.AddCommand(pluginArtifacts(p)...)
	c.AddCommand(pluginTestCommand(p), pluginNewCommand(p), pluginRecordCommand(p), pluginReplayCommand(p), pluginTopCommand(p))
	return c
}
