package main

import (
	"io"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

func pluginInspectCommand(p *program) *cobra.Command {
	h := &howPulled{}
	var format string
	c := &cobra.Command{
		Use:   "inspect REFERENCE",
		Short: "Show what a registry has under a reference: digest, platforms, sizes, annotations and signatures",
		Long: `Show what a registry has under a reference, without fetching the plugin itself. With --key it says whether one of these keys signed it; signatures of
others are only counted.`,
		Example: `  coxswain plugins inspect registry.example.org/team/headers:1.4
  coxswain plugins inspect registry.example.org/team/headers:1.4 --key cosign.pub -o json`,
		Args: oneReference,
		RunE: func(c *cobra.Command, args []string) error {
			a := &asked{p: p, format: format}
			if err := a.check(); err != nil {
				return err
			}
			src, err := h.at(args[0])
			if err != nil {
				return err
			}
			store, done, err := scratch()
			if err != nil {
				return err
			}
			defer done()
			d, err := store.Describe(c.Context(), src)
			if err != nil {
				return err
			}
			return a.print(d, func(w io.Writer, _ bool) { show.Artifact(w, d, src) })
		},
	}
	h.flags(c)
	formatFlag(c, &format)
	c.Flags().StringVar(&h.source.Key, "key", "", keyHelp)
	return c
}
