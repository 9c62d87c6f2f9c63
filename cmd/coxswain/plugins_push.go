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

func pluginPushCommand(p *program) *cobra.Command {
	h := &howPulled{}
	var annotations []string
	var output string
	c := &cobra.Command{
		Use:   "push REFERENCE FILE|OS/ARCH=FILE...",
		Short: "Put a plugin into a registry of OCI artifacts: a WASI module, or a program for each platform",
		Long: `Put a plugin into a registry of OCI artifacts, from where plugin: oci://… of a plugins.yaml runs it. A WASI module is one FILE, and runs on each
platform. A program is one FILE for each platform, such as linux/amd64=bin/mine, for which it must have been built. The answer is the reference with its
digest, as it is to be written into plugins.yaml: only these bytes are run then.

Sign it with cosign, if plugins.yaml names a key in the place of a digest: cosign sign --key cosign.key REFERENCE@DIGEST

Who you are to the registry is what docker login, or any tool that writes Docker's config.json, has kept.`,
		Example: `  coxswain plugins push registry.example.org/team/headers:1.4 headers.wasm
  coxswain plugins push registry.example.org/team/inventory:2.0 linux/amd64=bin/amd64/inventory linux/arm64=bin/arm64/inventory
  coxswain plugins push localhost:5000/headers:dev headers.wasm --annotation org.opencontainers.image.source=https://git.example.org/headers`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("coxswain plugins push wants REFERENCE FILE..., such as: " +
					"coxswain plugins push registry.example.org/team/headers:1.4 headers.wasm")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(output); err != nil {
				return err
			}
			src, err := h.at(args[0])
			switch {
			case err != nil:
				return err
			case src.Reference.Digest() != "":
				return usageError{errors.New("what is pushed has the digest of its content: leave @sha256:… out")}
			case src.Reference.Tag() == "":
				return usageError{fmt.Errorf("give it a tag, such as %s:1.0", args[0])}
			}
			files, err := filesOf(args[1:])
			if err != nil {
				return err
			}
			said, err := pairs("annotation", annotations)
			if err != nil {
				return err
			}
			digest, err := artifact.Push(c.Context(), src, files, said)
			if err != nil {
				return err
			}
			at := src.Reference.At(digest)
			a := &asked{p: p, format: output}
			return a.print(map[string]string{"reference": string(at), "digest": digest}, func(w io.Writer, _ bool) { fmt.Fprintln(w, at) })
		},
	}
	h.flags(c)
	formatFlag(c, &output)
	c.Flags().StringArrayVar(&annotations, "annotation", nil, "KEY=VALUE that the artifact says of itself; may be given again")
	return c
}

// filesOf reads FILE or OS/ARCH=FILE.
func filesOf(args []string) (all []artifact.File, err error) {
	for _, arg := range args {
		f := artifact.File{Path: arg}
		if platform, file, ok := strings.Cut(arg, "="); ok && strings.Count(platform, "/") == 1 {
			f.Path = file
			f.OS, f.Architecture, _ = strings.Cut(platform, "/")
		}
		if err := f.Check(); err != nil {
			return nil, usageError{err}
		}
		if slices.ContainsFunc(all, func(o artifact.File) bool { return o.OS == f.OS && o.Architecture == f.Architecture }) {
			return nil, usageError{fmt.Errorf("%s is the second file for its platform", arg)}
		}
		all = append(all, f)
	}
	return all, nil
}
