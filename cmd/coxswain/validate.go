package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	configfile "github.com/coxswain-mesh/coxswain/plugins/config/file"
	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/files"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/spf13/cobra"
)

// stdin is how standard input is named on the command line, and in what is said of it.
const stdin = "-"

func (p *program) validate() *cobra.Command {
	var mesh, networks, output string
	c := &cobra.Command{
		Use:   "validate FILE|DIR…",
		Short: "Check configuration files as a control plane that reads them does",
		Long: `Validate reads files, and directories with all that is below them, and says what is wrong: with the text, by the schemas and
rules of Istio's custom resource definitions, and by what fields mean. It is what the plugins config/file and config/mesh do with them.

The exit status is 1 where errors were found; warnings alone don't count. coxswain explain-code CODE says more of a code.`,
		Example: `  coxswain validate config/
  coxswain validate --mesh mesh.yaml config/ -o sarif
  kubectl get virtualservices -A -o yaml | coxswain validate -`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && mesh == "" && networks == "" {
				return usageError{errors.New("coxswain validate wants files or directories, or - for standard input")}
			}
			if !slices.Contains([]string{"text", "json", "sarif"}, output) {
				return usageError{fmt.Errorf("--output is %s, not %q", report.Formats, output)}
			}
			return p.runValidate(args, mesh, networks, output)
		},
	}
	c.Flags().StringVar(&mesh, "mesh", "", "file with the mesh's settings (MeshConfig)")
	c.Flags().StringVar(&networks, "networks", "", "file with the mesh's networks (MeshNetworks)")
	c.Flags().StringVarP(&output, "output", "o", "text", report.Formats)
	return c
}

func (p *program) runValidate(paths []string, mesh, networks, output string) error {
	names, err := findFiles(paths)
	if err != nil {
		return err
	}
	found, resources := configfile.Validate(names, p.readFile, validation.New().Check)
	for kind, file := range map[string]string{configmesh.MeshConfig: mesh, configmesh.MeshNetworks: networks} {
		if file == "" {
			continue
		}
		content, err := p.readFile(file)
		if err != nil {
			return err
		}
		_, faults := configmesh.Read(kind, file, content, rules.Check)
		found = append(found, faults...)
		resources++
	}
	if err := report.Write(p.out, output, found, explain); err != nil {
		return err
	}
	if analysis.Refuses(found) {
		return errFound
	}
	if output == "text" && len(found) == 0 {
		fmt.Fprintf(p.out, "%d resources in %d files: nothing is wrong\n", resources, len(names))
	}
	return nil
}

// findFiles returns the files that paths mean, sorted as config/file has them; standard input is one.
func findFiles(paths []string) ([]string, error) {
	var named []string
	for _, path := range paths {
		if path != stdin {
			named = append(named, path)
		}
	}
	found, err := files.Find(named)
	if err != nil {
		return nil, err
	}
	if len(named) < len(paths) {
		found = append(found, stdin)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (p *program) readFile(path string) ([]byte, error) {
	if path == stdin {
		return io.ReadAll(p.in)
	}
	return files.Read(path)
}
