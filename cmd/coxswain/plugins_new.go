package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/scaffold"
	"github.com/spf13/cobra"
)

func pluginNewCommand(p *program) *cobra.Command {
	var o scaffold.Project
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the project of a new plugin: source, test, Makefile, README and its entry for plugins.yaml",
		Long: `Write the project of a new plugin into a new folder, NAME: source, test, Makefile, README and its entry for plugins.yaml.
In go there is one for each kind, in python for a registry, in c and in rust for a patch.`,
		Example: `  coxswain plugins new inventory --kind registry
  coxswain plugins new headers --kind patch --lang c
  coxswain plugins new mine --kind generator --sdk ~/src/coxswain`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("coxswain plugins new wants one argument, the NAME of the plugin and its folder")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name, o.Version = filepath.Base(args[0]), release(build())
			if o.SDK != "" {
				var err error
				if o.SDK, err = filepath.Abs(o.SDK); err != nil {
					return err
				}
			}
			if err := o.Write(args[0]); err != nil {
				return usageError{err}
			}
			fmt.Fprintf(p.out, "%s is a working plugin: cd %s && make test\n", o.Name, args[0])
			return nil
		},
	}
	c.Flags().StringVar(&o.Kind, "kind", "registry", "registry, config, generator, patch, authenticator or controller")
	c.Flags().StringVar(&o.Lang, "lang", "go", "go, rust, python or c")
	c.Flags().StringVar(&o.SDK, "sdk", "",
		"in go: folder of a checkout of "+scaffold.Module+" to use; empty: the release of this program, or a copy of its SDK where it is none")
	return c
}

// release is the version to require: that of this program, if it is one; otherwise empty.
func release(version string) string {
	if strings.HasPrefix(version, "v") && !strings.ContainsAny(version, "+ ") && strings.Count(version, ".") >= 2 {
		return version
	}
	return ""
}
