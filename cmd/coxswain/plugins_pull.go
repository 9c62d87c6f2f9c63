package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

func pluginPullCommand(p *program) *cobra.Command {
	h := &howPulled{}
	var to string
	c := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Fetch a plugin for this platform from a registry into a file, as a control plane does",
		Long: `Fetch a plugin for this platform from a registry into a file, with all the checks that a control plane makes: digests, sizes, platform and, with
--key, signatures. It is not run. The answer says what it is, and its sha256.`,
		Example: `  coxswain plugins pull registry.example.org/team/headers:1.4 --to headers.wasm
  coxswain plugins pull registry.example.org/team/headers:1.4 --key cosign.pub`,
		Args: oneReference,
		RunE: func(c *cobra.Command, args []string) error {
			src, err := h.at(args[0])
			if err != nil {
				return err
			}
			store, done, err := scratch()
			if err != nil {
				return err
			}
			defer done()
			found, err := store.Get(c.Context(), src, "")
			if err != nil {
				return err
			}
			name, mode := path.Base(src.Reference.Repository()), os.FileMode(0o755)
			what := "program"
			if found.Module {
				name, what, mode = name+".wasm", "module", 0o644
			}
			to = cmp.Or(to, name)
			if err := copyTo(to, found.Path, mode); err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s: a %s of %s, sha256 %s\n", to, what, show.Size(uint64(found.Bytes)), found.Sum)
			fmt.Fprintf(p.out, "from %s\n", src.Reference.At(found.Digest))
			if found.Signed != "" {
				fmt.Fprintf(p.out, "signed by %s\n", found.Signed)
			}
			return nil
		},
	}
	h.flags(c)
	c.Flags().StringVar(&h.source.Key, "key", "", keyHelp)
	c.Flags().StringVar(&to, "to", "", "file to write (default the last part of its name)")
	return c
}

// copyTo copies a file to where there is none.
func copyTo(to, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
