package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/spf13/cobra"
)

// pluginCommand is what the core starts for an entry with `builtin: KIND/NAME`.
func pluginCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "plugin KIND/NAME",
		Short:  "Run a built-in plugin; the core does this",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("coxswain plugin wants one argument, KIND/NAME; there are %s", strings.Join(names(), ", "))}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			made, ok := builtins()[args[0]]
			if !ok {
				return usageError{fmt.Errorf("there is no built-in plugin %s%s; there are %s",
					args[0], settings.Hint(args[0], names()), strings.Join(names(), ", "))}
			}
			profile(p, args[0], slog.New(slog.NewTextHandler(p.err, nil)))
			sdk.Serve(made)
			return nil
		},
	}
}

// names returns the built-in plugins in order.
func names() []string { return slices.Sorted(maps.Keys(builtins())) }

// describe returns what a built-in answers to a Hello.
func describe(builtin string, hello *pb.Hello) (*pb.Ready, error) {
	p, ok := builtins()[builtin]
	if !ok {
		return nil, fmt.Errorf("there is no built-in plugin %s", builtin)
	}
	return sdk.Describe(p, hello)
}
