package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/coxswain-mesh/coxswain/plugins/controller/status"
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
)

// removal is something that a control plane leaves in a cluster, and that uninstall takes away.
type removal struct {
	flag, usage string
	// find returns what is there, and what would stay of others' of that kind, a line each; and
	// what takes it away, which returns a line for each that it did.
	find func(ctx context.Context, client dynamic.Interface, revision string) (there, others []string,
		remove func(ctx context.Context) ([]string, error), err error)
}

// removals are in the order in which they are done: webhooks first, so that what else is taken away
// keeps no pod from being created.
var removals = []removal{
	{"webhooks", "the configurations of webhooks, those of tags, too, and the rights that came with tags", findWebhooks},
	{"statuses", "what controller/status says in statuses of the Gateway API's objects, as far as no istiod was the last to write it", findStatuses},
}

func findStatuses(ctx context.Context, client dynamic.Interface, revision string) (there, others []string,
	remove func(ctx context.Context) ([]string, error), err error) {
	left, err := status.FindLeft(ctx, client, "", revision)
	if err != nil {
		return nil, nil, nil, err
	}
	return left.Names(), nil, left.TakeBack, nil
}

func findWebhooks(ctx context.Context, client dynamic.Interface, revision string) (there, others []string,
	remove func(ctx context.Context) ([]string, error), err error) {
	f, err := webhooks.Find(ctx, client, revision)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, name := range f.Mutating {
		there = append(there, "MutatingWebhookConfiguration/"+name)
	}
	for _, name := range f.Validating {
		there = append(there, "ValidatingWebhookConfiguration/"+name)
	}
	return there, f.Others, func(ctx context.Context) ([]string, error) { return f.Remove(ctx, client) }, nil
}

// uninstallCommand takes away what a control plane leaves in a cluster.
func uninstallCommand(p *program) *cobra.Command {
	var f clusterFlags
	var revision string
	var yes bool
	chosen := make([]bool, len(removals))
	c := &cobra.Command{
		Use:   "uninstall --webhooks --statuses",
		Short: "Take away what a control plane leaves in a cluster",
		Long: `Uninstall takes away what a control plane leaves in a cluster, of the kinds that flags name. Statuses are taken back once no control plane writes them any more. Without --yes it says what it would do, and changes nothing. It is done before the control plane itself is removed
(helm uninstall, kubectl delete): an API server that asks webhooks of a control plane that has gone creates no pods. What is not ours stays, and is named.`,
		Example: `  coxswain uninstall --webhooks
  coxswain uninstall --webhooks --yes
  coxswain uninstall --webhooks --statuses --revision canary --yes`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, ctx, cancel, err := f.client(p, c)
			if err != nil {
				return err
			}
			defer cancel()
			any := false
			for i, r := range removals {
				if !chosen[i] {
					continue
				}
				any = true
				if err := runUninstall(ctx, p, client, r, revision, yes); err != nil {
					return err
				}
			}
			if !any {
				return usageError{errors.New("coxswain uninstall wants to know what: --webhooks, --statuses")}
			}
			return nil
		},
	}
	f.add(c)
	for i, r := range removals {
		c.Flags().BoolVar(&chosen[i], r.flag, false, r.usage)
	}
	c.Flags().StringVar(&revision, "revision", "", "of this revision alone; that which has none is called default; empty: of all")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do it; without it, it is said what would be done")
	return c
}

// runUninstall takes one sort of things away, or says what it would take away.
func runUninstall(ctx context.Context, p *program, client dynamic.Interface, r removal, revision string, yes bool) error {
	there, others, remove, err := r.find(ctx, client, revision)
	if err != nil {
		return err
	}
	for _, o := range others {
		fmt.Fprintf(p.out, "%s stays: it is another's\n", o)
	}
	if len(there) == 0 {
		fmt.Fprintf(p.out, "--%s: there is nothing to remove\n", r.flag)
		return nil
	}
	if !yes {
		for _, o := range there {
			fmt.Fprintf(p.out, "%s would be removed\n", o)
		}
		fmt.Fprintln(p.out, "nothing was changed; --yes removes what is named")
		return nil
	}
	lines, err := remove(ctx)
	for _, l := range lines {
		fmt.Fprintln(p.out, l)
	}
	return err
}
