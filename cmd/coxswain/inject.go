package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	api "istio.io/api/mesh/v1alpha1"

	"github.com/spf13/cobra"
)

// injectFiles are what coxswain inject reads.
type injectFiles struct {
	objects                []string
	config, values, mesh   string
	revision, injectionMap string
	native                 bool
	names                  render.Names
}

// injectCommand puts proxies into the pods of files.
func injectCommand(p *program) *cobra.Command {
	var f injectFiles
	c := &cobra.Command{
		Use:   "inject -f FILE…",
		Short: "Put proxies into the pods and workloads of files, as controller/injector does when pods are created",
		Long: `Inject reads files with Kubernetes objects and prints them with a proxy in their pods, and in what their pods are made of; all else as it is. Nothing of a cluster
is asked. It is for clusters without webhooks, and to see what the injector makes of a pod.

Without --injectConfig the templates are the built-in ones, and --values says what is to be other than usual (keys of istiod's chart: global, pilot.cni, …). With it,
the templates are those of the file: the key config of ConfigMap istio-sidecar-injector, as --values is its key values. --configMap reads both from such a ConfigMap.
What gets no proxy is named on standard error, with the reason.`,
		Example: `  coxswain inject -f deployment.yaml | kubectl apply -f -
  coxswain inject -f deployment.yaml --values values.yaml --mesh mesh.yaml
  kubectl get cm istio-sidecar-injector -n istio-system -o yaml > injector.yaml && coxswain inject -f pod.yaml --configMap injector.yaml`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(f.objects) == 0 {
				return usageError{errors.New("coxswain inject wants --filename, a file with pods or workloads, or - for standard input")}
			}
			return runInject(p, f)
		},
	}
	c.Flags().StringSliceVarP(&f.objects, "filename", "f", nil, "file with Kubernetes objects, or a directory of such; -: standard input")
	c.Flags().StringVar(&f.config, "injectConfig", "", "file with templates and policies, as the key config of ConfigMap istio-sidecar-injector has them")
	c.Flags().StringVar(&f.values, "values", "", "file with values, as the key values of ConfigMap istio-sidecar-injector has them")
	c.Flags().StringVar(&f.injectionMap, "configMap", "", "file with a ConfigMap that has the keys config and values")
	c.Flags().StringVar(&f.mesh, "mesh", "", "file with the mesh's settings (MeshConfig)")
	c.Flags().StringVar(&f.revision, "revision", "", "the control plane's revision, which pods are marked with")
	c.Flags().StringSliceVar(&f.names.Env, "env", nil, "variables of the environment that templates may read, as controller/injector's setting env")
	c.Flags().StringSliceVar(&f.names.Hosts, "hosts", nil, "names whose addresses templates may look up, as controller/injector's setting hosts")
	c.Flags().BoolVar(&f.native, "native-sidecars", true, "make proxies init containers that go on running, which Kubernetes 1.29 and later knows")
	return c
}

// injection reads what is to be injected.
func injection(p *program, f injectFiles) (*render.Settings, *api.MeshConfig, error) {
	texts := map[string][]byte{}
	for _, file := range []string{f.config, f.values, f.mesh, f.injectionMap} {
		if file == "" {
			continue
		}
		text, err := readFile(p, file)
		if err != nil {
			return nil, nil, err
		}
		texts[file] = text
	}
	config, values := string(texts[f.config]), string(texts[f.values])
	if f.injectionMap != "" {
		if f.config != "" || f.values != "" {
			return nil, nil, usageError{errors.New("--configMap stands for --injectConfig and --values: name one or the other")}
		}
		var err error
		if config, values, err = render.ConfigMap(texts[f.injectionMap]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.injectionMap, err)
		}
	}
	s, err := render.Read(config, values, f.names)
	if err != nil {
		return nil, nil, err
	}
	m := configmesh.Defaults()
	if f.mesh != "" {
		read, faults := configmesh.Read(configmesh.MeshConfig, f.mesh, texts[f.mesh], rules.Check)
		for _, fault := range faults {
			if fault.Severity == finding.Error {
				return nil, nil, errors.New(fault.Error())
			}
		}
		m, _ = read.(*api.MeshConfig)
	}
	return s, m, nil
}

func runInject(p *program, f injectFiles) error {
	s, m, err := injection(p, f)
	if err != nil {
		return err
	}
	names, err := findFiles(f.objects)
	if err != nil {
		return err
	}
	o := &render.Offline{Settings: s, Mesh: m, Native: f.native, Revision: f.revision, Skipped: func(what, why string) {
		fmt.Fprintf(p.err, "%s gets no proxy: %s\n", what, why)
	}}
	out := &bytes.Buffer{} // All or nothing: half of it would be applied, too.
	for _, name := range slices.Compact(names) {
		text, err := readFile(p, name)
		if err != nil {
			return err
		}
		if err := o.Stream(text, out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err = p.out.Write(out.Bytes())
	return err
}
