package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rootCommand returns the commands. What the core starts gets those alone that it is started with:
// each process would make all of them.
func rootCommand(p *program, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "coxswain",
		Short:         "A control plane for Envoy and every other xDS client, made of plugins",
		SilenceErrors: true,
		SilenceUsage:  true,
		Example: `  coxswain discovery --configDir ./config       serve the Istio resources of a directory
  coxswain bootstrap --type router --name gw     print the bootstrap of an Envoy
  coxswain plugins                               show what runs, and how it is`,
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(flagError)
	children := []*cobra.Command{pluginCommand(p), wasmRunnerCommand(p)}
	root.AddCommand(children...)
	if len(args) > 0 && slices.ContainsFunc(children, func(c *cobra.Command) bool { return c.Name() == args[0] }) {
		return root
	}
	root.AddCommand(discoveryCommand(p), bootstrapCommand(p), certificateCommand(p), tokenCommand(p),
		pluginsCommand(p), holdCommand(p), viewsCommand(p), explainCommand(p), impactCommand(p), watchCommand(p),
		proxyStatusCommand(p), proxiesCommand(p), waitCommand(p), bugReportCommand(p), historyCommand(p),
		diffCommand(p), pinCommand(p), unpinCommand(p), rolloutCommand(p), routeCommand(p), configCommand(p),
		validateCommand(p), analyzeCommand(p), planCommand(p), testCommand(p), recordCommand(p), logCommand(p),
		explainCodeCommand(p), schemaCommand(p), requestCommand(p), uiCommand(p), topCommand(p), versionCommand(p))
	root.AddCommand(collateralCommand(p))
	root.AddCommand(injectCommand(p), webhooksCommand(p), tagCommand(p), uninstallCommand(p), migrateCommand(p), gatewaysCommand(p), upgradeCommand(p))
	root.Version = build()
	root.SetVersionTemplate(versionLine())
	completeAll(p, root)
	return root
}

// flagError names the flag that an unknown one may have been meant for.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := settings.Hint(unknown.GetSpecifiedName(), names)
	if hint == "" {
		hint = fmt.Sprintf("; see %s --help", c.CommandPath())
	}
	return usageError{fmt.Errorf("unknown flag --%s%s", unknown.GetSpecifiedName(), hint)}
}

// noArgs refuses arguments, which cobra's own check words as if they were commands.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, not %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	return nil
}

// refuseShells has the library's command completion refuse a shell that it doesn't know, for which
// it would show its help and end well.
func refuseShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		var shells []string
		for _, shell := range c.Commands() {
			shells = append(shells, shell.Name())
		}
		return usageError{fmt.Errorf("%s knows no shell %q: name one of %s", c.CommandPath(), args[0], strings.Join(shells, ", "))}
	}
	c.Args = cobra.ArbitraryArgs
}
