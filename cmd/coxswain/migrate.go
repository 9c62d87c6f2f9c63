package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/migrate"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
)

// migration is what coxswain migrate is told.
type migration struct {
	clusterFlags
	files                     []string
	live                      bool
	namespace, deployment, to string
}

// migrateCommand says how Coxswain is to be told what an istiod is told.
func migrateCommand(p *program) *cobra.Command {
	var f migration
	c := &cobra.Command{
		Use:   "migrate -f FILE… | --live",
		Short: "Read how an istiod is deployed, and print how Coxswain is told the same, and what differs",
		Long: `Migrate reads an istiod's Deployment, with the ConfigMaps, Services and webhooks that came with it: from files (a chart that was rendered, kubectl get -o yaml), from standard input, or from a cluster. It
prints settings.yaml, plugins.yaml, rights.yaml and webhooks.yaml, or writes them into the folder that --to names, and a report: what each argument, variable, mount and object becomes, and of what differs what
to do. Nothing in a cluster is changed. Secrets are not read, and values of variables that are not known to be istiod's are not shown.`,
		Example: `  helm get manifest istiod -n istio-system | coxswain migrate -f -
  coxswain migrate --live --to coxswain/
  coxswain migrate -f istiod.yaml -f configmaps.yaml --deployment istiod-canary`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runMigrate(p, c, f) },
	}
	f.add(c)
	c.Flags().StringSliceVarP(&f.files, "filename", "f", nil, "file with Kubernetes objects, or a directory of such; -: standard input")
	c.Flags().BoolVar(&f.live, "live", false, "read a cluster")
	c.Flags().StringVar(&f.namespace, "namespace", "istio-system", "with --live, istiod's namespace")
	c.Flags().StringVar(&f.deployment, "deployment", "", "name of istiod's Deployment, where there are several")
	c.Flags().StringVar(&f.to, "to", "", "folder that files are written into; none of them may be there")
	return c
}

func runMigrate(p *program, c *cobra.Command, f migration) error {
	in := &migrate.Input{}
	switch {
	case f.live == (len(f.files) > 0):
		return usageError{errors.New("coxswain migrate wants --filename, files with an istiod's objects, or --live")}
	case f.live:
		client, ctx, cancel, err := f.client(p, c)
		if err != nil {
			return err
		}
		defer cancel()
		if err := living(ctx, client, in, f.namespace); err != nil {
			return err
		}
	default:
		names, err := findFiles(f.files)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := readIstiod(p, in, name); err != nil {
				return err
			}
		}
	}
	plan, err := migrate.Make(in, f.deployment)
	if err != nil {
		return err
	}
	return writeMigration(p, plan, f.to)
}

// readIstiod reads a file; standard input only as far as it may be long.
func readIstiod(p *program, in *migrate.Input, name string) error {
	if name == stdin {
		return in.Read("standard input", p.in)
	}
	text, err := readFile(p, name)
	if err != nil {
		return err
	}
	return in.Read(name, bytes.NewReader(text))
}

// writeMigration writes a plan down.
func writeMigration(p *program, plan *migrate.Plan, to string) error {
	files, err := plan.Files()
	if err != nil {
		return err
	}
	if to == "" {
		for _, file := range files {
			fmt.Fprintf(p.out, "##### %s\n%s\n", file.Name, file.Text)
		}
		fmt.Fprintln(p.out, "##### report")
		plan.Report(p.out)
		return nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(to, file.Name)); err == nil {
			return fmt.Errorf("%s is there; nothing was written", filepath.Join(to, file.Name))
		}
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(to, file.Name), file.Text, 0o644); err != nil {
			return err
		}
	}
	plan.Report(p.out)
	return nil
}

// living reads what a cluster has of istiods.
func living(ctx context.Context, objects dynamic.Interface, in *migrate.Input, namespace string) (err error) {
	if in.Deployments, err = webhooks.Deployments.List(ctx, objects, namespace, ""); err != nil {
		return err
	}
	daemons, err := webhooks.DaemonSets.List(ctx, objects, namespace, "")
	if err != nil {
		return err
	}
	for _, d := range daemons {
		in.Others = append(in.Others, migrate.Workload("DaemonSet", d.ObjectMeta, d.Spec.Template))
	}
	stateful, err := webhooks.StatefulSets.List(ctx, objects, namespace, "")
	if err != nil {
		return err
	}
	for _, s := range stateful {
		in.Others = append(in.Others, migrate.Workload("StatefulSet", s.ObjectMeta, s.Spec.Template))
	}
	spaces, err := webhooks.Namespaces.List(ctx, objects, "", corev1.LabelMetadataName+"="+namespace)
	if err != nil {
		return err
	}
	for _, n := range spaces {
		in.Others = append(in.Others, migrate.OfNamespace(n))
	}
	if in.Services, err = webhooks.Services.List(ctx, objects, namespace, ""); err != nil {
		return err
	}
	maps, err := webhooks.ConfigMaps.List(ctx, objects, namespace, "")
	if err != nil {
		return err
	}
	for _, m := range maps {
		if concerns(m) {
			in.ConfigMaps = append(in.ConfigMaps, m)
		}
	}
	if in.Mutating, err = webhooks.Mutating.List(ctx, objects, "", webhooks.RevisionLabel); err != nil {
		return err
	}
	in.Validating, err = webhooks.Validating.List(ctx, objects, "", webhooks.RevisionLabel)
	return err
}

// concerns reports whether a ConfigMap of istiod's namespace is one that istiods read.
func concerns(m *corev1.ConfigMap) bool {
	return m.Name == "istio" || strings.HasPrefix(m.Name, "istio-") && m.Name != "istio-ca-root-cert" && m.Name != "istio-ca-crl"
}
