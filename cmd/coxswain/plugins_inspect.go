package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/host/artifact"
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
			return a.print(d, func(w io.Writer, _ bool) { printDescription(w, d, src) })
		},
	}
	h.flags(c)
	formatFlag(c, &format)
	c.Flags().StringVar(&h.source.Key, "key", "", keyHelp)
	return c
}

func printDescription(w io.Writer, d *artifact.Description, src artifact.Source) {
	fmt.Fprintf(w, "%s\n", src.Reference.At(d.Digest))
	switch {
	case d.Signed != "":
		fmt.Fprintf(w, "  signed by %s, %s in all\n", d.Signed, many(d.Signatures, "signature"))
	case src.Key != "":
		fmt.Fprintf(w, "  no key of %s signed it; %s of others\n", src.Key, many(d.Signatures, "signature"))
	default:
		fmt.Fprintf(w, "  %s, which --key checks\n", many(d.Signatures, "signature"))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		fmt.Fprintf(w, "  %s: %.200q\n", key, d.Annotations[key])
	}
	fmt.Fprintln(w, "\nPLATFORM\tSIZE\tDIGEST\tCONTENT")
	for _, p := range d.Platforms {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(strings.Trim(p.OS+"/"+p.Architecture, "/"), "any"), size(uint64(p.Bytes)), p.Digest, strings.Join(p.Types, ", "))
	}
}
