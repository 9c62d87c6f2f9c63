package main

import (
	"github.com/spf13/cobra"
)

func pluginRollbackCommand(p *program) *cobra.Command {
	c := pluginChangeCommand(p, "rollback", "Take back the last swap of a plugin: what ran before takes its place again")
	c.Long = `Take back the last swap of a plugin, whether a command or an edit of plugins.yaml made it: what ran before takes its place again, and its entry is written
to plugins.yaml as it was, without touching the others. While the old instance is warm (rollback.window) it comes back at once; later a new one is started from
the entry as it was, and is compared as in any swap. A second rollback goes back one swap further, up to ten.

What ran before is known since the control plane was started, and since the plugin was added or enabled last: after that it takes "coxswain plugins swap".`
	c.Example = `  coxswain plugins rollback mine --dry-run
  coxswain plugins rollback mine`
	return c
}
