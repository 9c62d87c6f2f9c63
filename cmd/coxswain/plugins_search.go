package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/artifact"
	"github.com/spf13/cobra"
)

func pluginSearchCommand(p *program) *cobra.Command {
	h := &howPulled{}
	var format string
	c := &cobra.Command{
		Use:   "search REGISTRY[/NAME] [WORD]",
		Short: "List the artifacts of a registry, or the tags of one",
		Long: `List the names in a registry, with WORD those that have it in them; with a NAME the tags of that artifact. Many registries that several people
share, Docker Hub and those of clouds among them, don't let their names be listed, and say so; tags can be listed at each.`,
		Example: `  coxswain plugins search registry.example.org headers
  coxswain plugins search registry.example.org/team/headers`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{errors.New("coxswain plugins search wants REGISTRY[/NAME] and at most one WORD, such as: " +
					"coxswain plugins search registry.example.org headers")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a := &asked{p: p, format: format}
			if err := a.check(); err != nil {
				return err
			}
			registry := strings.TrimPrefix(args[0], "oci://")
			named, word := "", ""
			if strings.Contains(registry, "/") {
				named = registry
			}
			if len(args) == 2 {
				word = args[1]
			}
			src, err := h.at(named)
			if err != nil {
				return err
			}
			all, err := artifact.Search(c.Context(), src, registry, word)
			if err != nil {
				return fmt.Errorf("%s: %w", registry, err)
			}
			slices.Sort(all)
			return a.print(all, func(w io.Writer, _ bool) {
				for _, name := range all {
					fmt.Fprintln(w, name)
				}
				if len(all) == 0 {
					fmt.Fprintln(w, "there is nothing")
				}
			})
		},
	}
	h.flags(c)
	formatFlag(c, &format)
	return c
}
