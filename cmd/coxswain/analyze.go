package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/validation/files"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/spf13/cobra"
)

// errFound is the end of a command that found errors and has shown them.
var errFound = errors.New("there are errors")

// analyzing is what `coxswain analyze` was told.
type analyzing struct {
	live         bool
	cluster      bool
	access       clusterFlags
	remotes      []string
	namespace    string
	addr         string
	mesh         string
	output       string
	suppressions []string
}

func analyzeCommand(p *program) *cobra.Command {
	a := analyzing{}
	c := &cobra.Command{
		Use:   "analyze [FILE|DIR …]",
		Short: "Find what is wrong between resources: in files, in a running control plane, or in a cluster",
		Long: `Analyze checks each resource, and then what they mean to each other: references to what is not there, routes that are never
taken, policies that contradict. Kubernetes' objects in the files (services, pods, deployments, secrets) say what there is.

With --live it asks a running control plane for the resources, services and endpoints that it has. With --cluster it
asks an API server, for all that --live knows and for what only an API server has: pods, namespaces, webhooks,
definitions, and statuses. What the account may not list is named, and nothing is said of it. With --remote-contexts it
asks other clusters of the mesh, too, whether they have the same services.

The exit status is 1 where errors were found. The annotation galley.istio.io/analyze-suppress of a resource lists codes not to be told of it.`,
		Example: `  coxswain analyze config/
  coxswain analyze --live
  coxswain analyze --cluster --context production
  coxswain analyze config/ -o sarif -S "IST0101=VirtualService *.legacy"`,
		RunE: func(c *cobra.Command, args []string) error { return runAnalyze(p, c, args, a) },
	}
	c.Flags().BoolVar(&a.live, "live", false, "analyze what a running control plane has")
	addrFlag(p, c, &a.addr)
	c.Flags().BoolVar(&a.cluster, "cluster", false, "analyze what an API server has")
	a.access.add(c)
	c.Flags().StringArrayVar(&a.remotes, "remote-contexts", nil,
		"context of another cluster of the mesh, whose services are compared with this one's, for --cluster; once for each")
	c.Flags().StringVar(&a.namespace, "namespace", "istio-system", "the control plane's namespace, of whose ConfigMaps the mesh's settings are, for --cluster")
	c.Flags().StringVar(&a.mesh, "mesh", "", "file with the mesh's settings (MeshConfig)")
	c.Flags().StringVarP(&a.output, "output", "o", "text", report.Formats)
	c.Flags().StringArrayVarP(&a.suppressions, "suppress", "S", nil, `leave out a code for some resources: "CODE=KIND NAME.NAMESPACE", with * for anything`)
	return c
}

func runAnalyze(p *program, c *cobra.Command, args []string, a analyzing) error {
	if asked := []bool{a.live, a.cluster, len(args) > 0}; count(asked) != 1 {
		return usageError{errors.New("coxswain analyze wants files or directories, or --live, or --cluster")}
	}
	if !slices.Contains([]string{"text", "json", "sarif"}, a.output) {
		return usageError{fmt.Errorf("--output is %s, not %q", report.Formats, a.output)}
	}
	if len(a.remotes) > 0 && !a.cluster {
		return usageError{errors.New("--remote-contexts goes with --cluster")}
	}
	suppressions, err := parseSuppressions(a.suppressions)
	if err != nil {
		return usageError{err}
	}
	r := &analysis.Reader{Check: validation.New().Check}
	switch {
	case a.live:
		err = readLive(c.Context(), r, a.addr)
	case a.cluster:
		err = readCluster(p, c, r, &a)
	default:
		err = readFiles(r, args, a.mesh)
	}
	if err != nil {
		return err
	}
	all := r.All()
	if a.live {
		left, err := liveLeftOut(c.Context(), a.addr)
		if err != nil {
			return err
		}
		all = append(all, left...)
	}
	found := analysis.Without(all, suppressions)
	if err := report.Write(p.out, a.output, found, explain); err != nil {
		return err
	}
	if a.output == "text" {
		switch left := report.LeftOut(found); {
		case left != "":
			fmt.Fprintln(p.out, left)
		case len(found) == 0:
			fmt.Fprintln(p.out, "nothing is wrong")
		}
	}
	if analysis.Refuses(found) {
		return errFound
	}
	return nil
}

// count returns how many are true.
func count(list []bool) (n int) {
	for _, each := range list {
		if each {
			n++
		}
	}
	return n
}

// readCluster takes what an API server has, and names on standard error what may not be read.
func readCluster(p *program, c *cobra.Command, r *analysis.Reader, a *analyzing) error {
	client, ctx, cancel, err := a.access.client(p, c)
	if err != nil {
		return err
	}
	defer cancel()
	forbidden, err := cluster.Read(ctx, client, a.namespace, r)
	if err != nil {
		return err
	}
	if len(forbidden) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "these may not be listed, and nothing is said of what depends on them: %s\n", strings.Join(forbidden, ", "))
	}
	for _, remote := range a.remotes {
		if err := readRemote(p, c, r, a.access, remote); err != nil {
			return err
		}
	}
	if a.mesh == "" {
		return nil
	}
	content, err := files.Read(a.mesh)
	if err == nil {
		r.SetMesh(a.mesh, content)
	}
	return err
}

// readRemote takes what another cluster has.
func readRemote(p *program, c *cobra.Command, r *analysis.Reader, access clusterFlags, name string) error {
	access.context = name
	client, ctx, cancel, err := access.client(p, c)
	if err != nil {
		return err
	}
	defer cancel()
	return cluster.ReadRemote(ctx, client, name, r)
}

func parseSuppressions(texts []string) (list []analysis.Suppression, err error) {
	for _, text := range texts {
		s, err := analysis.ParseSuppression(text)
		if err != nil {
			return nil, fmt.Errorf("--suppress: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}

func readFiles(r *analysis.Reader, paths []string, mesh string) error {
	names, err := files.Find(paths)
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := files.Read(name)
		if err != nil {
			return err
		}
		r.Add(name, content)
	}
	if mesh == "" {
		return nil
	}
	content, err := files.Read(mesh)
	if err == nil {
		r.SetMesh(mesh, content)
	}
	return err
}
