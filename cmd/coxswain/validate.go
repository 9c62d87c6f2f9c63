package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	configfile "github.com/coxswain-mesh/coxswain/plugins/config/file"
	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/files"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/spf13/cobra"
)

// stdin is how standard input is named on the command line, and in what is said of it.
const stdin = "-"

func validateCommand(p *program) *cobra.Command {
	var mesh, networks, configDir, output string
	var everything bool
	c := &cobra.Command{
		Use:   "validate FILE|DIR…",
		Short: "Check configuration files as a control plane that reads them does",
		Long: `Validate reads files, and directories with all that is below them, and says what is wrong: with the text, by the schemas and
rules of Istio's custom resource definitions, and by what fields mean. It is what the plugins config/file and config/mesh do with them.
Where there are Secrets in the files it warns of those that Gateways and DestinationRules name and that are not among them, or lack something.

A file with a list of plugins is a plugins.yaml: its keys are checked, the programs, modules, hashes and secrets that it names, and the configs of
built-in plugins. Nothing is started.

What istiod serves and nobody serves here is counted as left out; ConfigMaps with the mesh's settings are read as --mesh is.

The exit status is 1 where errors were found; warnings alone don't count, nor what is left out, unless --everything is given. coxswain explain-code CODE says more of a code.`,
		Example: `  coxswain validate config/
  coxswain validate plugins.yaml
  coxswain validate --mesh mesh.yaml config/ -o sarif
  kubectl get virtualservices -A -o yaml | coxswain validate -`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && mesh == "" && networks == "" {
				return usageError{errors.New("coxswain validate wants files or directories, or - for standard input")}
			}
			if !slices.Contains([]string{"text", "json", "sarif"}, output) {
				return usageError{fmt.Errorf("--output is %s, not %q", report.Formats, output)}
			}
			return runValidate(p, args, mesh, networks, configDir, output, everything)
		},
	}
	c.Flags().StringVar(&mesh, "mesh", "", "file with the mesh's settings (MeshConfig)")
	c.Flags().StringVar(&networks, "networks", "", "file with the mesh's networks (MeshNetworks)")
	c.Flags().StringVar(&configDir, "configDir", "", "the --configDir that discovery is to run with, for the config/file of a plugins.yaml")
	c.Flags().BoolVar(&everything, "everything", false, "exit with 1 also where resources are left out, as nobody serves them here")
	c.Flags().StringVarP(&output, "output", "o", "text", report.Formats)
	return c
}

func runValidate(p *program, paths []string, mesh, networks, configDir, output string, everything bool) error {
	names, err := findFiles(paths)
	if err != nil {
		return err
	}
	names, sets, read := sortOut(p, names)
	found, resources := configfile.Validate(names, read, warning(validation.New()))
	found = append(found, credentials(names, read)...)
	inMaps, maps := configMaps(names, read)
	found, resources = append(found, inMaps...), resources+maps
	plugins := 0
	for _, file := range sets {
		text, err := read(file)
		if err != nil {
			return err
		}
		faults, n, err := validateSet(p, file, text, configDir)
		if err != nil {
			return err
		}
		found, plugins = append(found, faults...), plugins+n
	}
	for kind, file := range map[string]string{configmesh.MeshConfig: mesh, configmesh.MeshNetworks: networks} {
		if file == "" {
			continue
		}
		content, err := readFile(p, file)
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
	left := report.LeftOut(found)
	if left != "" && output == "text" {
		fmt.Fprintln(p.out, left)
	}
	if analysis.Refuses(found) {
		return errFound
	}
	if left != "" && everything {
		return errors.New(left)
	}
	if output == "text" && len(found) == 0 {
		also := ""
		if len(sets) > 0 {
			also = fmt.Sprintf(", %s in %s", show.Many(plugins, "plugin"), strings.Join(sets, ", "))
		}
		fmt.Fprintf(p.out, "%s in %s%s: nothing is wrong\n",
			show.Many(resources, "resource"), show.Many(len(names), "file"), also)
	}
	return nil
}

// configMaps returns what is wrong with the mesh's settings in ConfigMaps of files, as istiod and
// config/mesh read them, and how many there are.
func configMaps(names []string, read func(string) ([]byte, error)) (found []report.Fault, n int) {
	for _, name := range names {
		text, err := read(name)
		if err != nil {
			continue // which is said already
		}
		for _, m := range configmesh.InConfigMaps(text) {
			n++
			_, faults := configmesh.Read(m.Kind, name, m.Text, rules.Check)
			for _, f := range faults {
				f.Line, f.Column = f.Line+m.Lines, f.Column+m.Columns
				f.Namespace, f.Name = m.Namespace, m.Name
				found = append(found, f)
			}
		}
	}
	return found, n
}

// credentials returns what is wrong with the Secrets and ConfigMaps that files name, if such
// objects are in some of them. Control planes serve the rest.
func credentials(names []string, read func(string) ([]byte, error)) []report.Fault {
	r := &analysis.Reader{}
	for _, name := range names {
		if text, err := read(name); err == nil { // which is said already
			r.Add(name, text)
		}
	}
	return r.Credentials()
}

// warning returns a check that tells more than a control plane does, which refuses or takes: what
// is right and does not do what it seems to.
func warning(c *validation.Checker) func(finding.Resource) []finding.Finding {
	return func(r finding.Resource) []finding.Finding {
		found := c.Check(r)
		if r.Partial || finding.Refuses(found) {
			return found
		}
		return append(found, analysis.Alone(r)...)
	}
}

// sortOut tells files of plugins from others; read returns what is in them.
func sortOut(p *program, names []string) (resources, sets []string, read func(string) ([]byte, error)) {
	kept := map[string][]byte{} // standard input can be read but once
	for _, name := range names {
		text, err := readFile(p, name)
		if err == nil && isSet(text) {
			sets = append(sets, name)
		} else {
			resources = append(resources, name)
		}
		if name == stdin {
			kept[name] = text
		}
	}
	return resources, sets, func(name string) ([]byte, error) {
		if text, ok := kept[name]; ok {
			return text, nil
		}
		return readFile(p, name)
	}
}

// findFiles returns the files that paths mean, sorted as config/file has them; standard input is
// one.
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

func readFile(p *program, path string) ([]byte, error) {
	if path == stdin {
		return io.ReadAll(p.in)
	}
	return files.Read(path)
}
