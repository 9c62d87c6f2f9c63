package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/spf13/cobra"
)

// pluginPinCommand writes hashes into a plugins.yaml.
func pluginPinCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "pin FILE [NAME...]",
		Short: "Write the sha256 of what plugins run, as it is now, into a plugins.yaml",
		Long: `Write into a plugins.yaml the sha256 of the programs and modules that its plugins run, and of their files, as they are now; all plugins, or those that
are named. Only what has these bytes is started from then on. Of a plugin in a registry (plugin: oci://…)
it is the digest that its tag means now. A plugin that is pinned needs no ` + "`insecure: true`" + `, which is taken away.`,
		Example: `  coxswain plugins pin plugins.yaml
  coxswain plugins pin plugins.yaml inventory`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("coxswain plugins pin wants FILE [NAME...], such as: coxswain plugins pin plugins.yaml")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return pinPlugins(c.Context(), p, args[0], args[1:]) },
	}
}

func pinPlugins(ctx context.Context, p *program, file string, names []string) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set, err := manifest.Parse(file, before)
	if err != nil {
		return err
	}
	for _, name := range names {
		if e, _ := set.Get(name); e == nil {
			return fmt.Errorf("%s has no plugin %s", file, name)
		}
	}
	text, dir := before, filepath.Dir(file)
	for _, e := range set.Plugins {
		if e.Builtin != "" || len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		edit, err := manifest.NewEdit(text)
		if err == nil {
			text, err = edit.Entry(e.Name, func(m manifest.Mapping) error {
				if e.Plugin != "" {
					return pinArtifact(ctx, set, e, m)
				}
				return manifest.Pin(m, dir, exec.LookPath)
			})
		}
		if err != nil {
			return fmt.Errorf("%s: plugin %s: %w", e.At, e.Name, err)
		}
		fmt.Fprintf(p.out, "%s is pinned\n", e.Name)
	}
	if bytes.Equal(text, before) {
		return nil
	}
	return manifest.Write(file, text)
}

// pinArtifact writes into an entry the digest that its tag means now.
func pinArtifact(ctx context.Context, set *manifest.Set, e *manifest.Entry, m manifest.Mapping) error {
	store, done, err := scratch()
	if err != nil {
		return err
	}
	defer done()
	src := host.Source(set, e)
	src.Helpers = src.Credentials == ""
	if e.Plugin.Tag() != "" {
		src.Reference = e.Plugin.Loose()
	}
	digest, err := store.Resolve(ctx, src)
	if err != nil {
		return err
	}
	return m.Set("plugin", string(e.Plugin.At(digest)))
}
