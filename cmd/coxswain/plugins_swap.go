package main

import (
	"github.com/spf13/cobra"
)

func pluginSwapCommand(p *program) *cobra.Command {
	o := &order{}
	var process, config string
	c := &cobra.Command{
		Use:   "swap NAME",
		Short: "Let a new instance take a plugin's place, after it was compared with the old one",
		Long: `Let a new instance take a plugin's place. It starts beside the old one; what it says is compared with what is served, and then it takes over in
one step. Without flags the instance is the one that plugins.yaml declares. The old one stays warm for rollback.window and comes back if proxies
refuse what the new one makes. Of an artifact (plugin: oci://…) whose tag is not pinned the registry is asked what the tag means now.
What the flags say is written to plugins.yaml, with the program's sha256.`,
		Example: `  coxswain plugins swap mine --process './mine-v2 --verbose' --dry-run
  coxswain plugins swap mine --wasm mine.wasm
  coxswain plugins swap mine --plugin oci://registry.example.org/team/mine:1.5 --dry-run
  coxswain plugins swap mesh --config mesh.yaml`,
		Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.carrier(process, config); err != nil {
				return err
			}
			return sendOrder(p, c, args[0], "swap", o)
		},
	}
	o.flags(c)
	c.Flags().StringVar(&process, "process", "", "command to run, with arguments separated by spaces")
	c.Flags().StringVar(&o.Wasm, "wasm", "", "WASI module to run")
	c.Flags().StringVar(&o.Builtin, "builtin", "", "built-in plugin to run, KIND/NAME")
	c.Flags().StringVar(&o.Plugin, "plugin", "",
		"artifact to run, oci://REGISTRY/NAME:TAG or with @sha256:DIGEST; a tag is written with its digest, unless plugins.yaml names a key or says insecure")
	c.Flags().StringVar(&config, "config", "", "YAML file that takes the place of the entry's config")
	o.dryRun(c)
	c.MarkFlagsMutuallyExclusive("process", "wasm", "builtin", "plugin")
	return c
}
