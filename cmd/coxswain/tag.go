package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/spf13/cobra"
)

// tagCommand is about tags of revisions.
func tagCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "tag",
		Short: "Give revisions other names, by which namespaces choose them",
		Long: `Tags are names for revisions: a namespace with the label istio.io/rev=TAG gets proxies of the revision that the tag stands for, and stays as it is when the tag is moved to another one. The tag default is
whom namespaces with istio-injection=enabled, and objects without the label istio.io/rev, belong to. A tag is a MutatingWebhookConfiguration istio-revision-tag-TAG, as istioctl makes it, of the default one a
ValidatingWebhookConfiguration, too, a Service istiod-revision-tag-TAG where the revision has one, and the right of the control plane to keep its root in them. Revisions of istiod's have tags as well.`,
		Example: `  coxswain tag set prod --revision canary
  coxswain tag set prod --revision stable --overwrite
  coxswain tag generate prod --revision canary | kubectl apply -f -
  coxswain tag list
  coxswain tag remove prod --yes`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := &tagFlags{p: p}
	f.add(c)
	c.PersistentFlags().StringVar(&f.namespace, "namespace", "istio-system", "the control planes' namespace")
	c.AddCommand(f.set(), f.generate(), f.list(), f.remove())
	return c
}

// tagFlags are how tags' commands find the cluster.
type tagFlags struct {
	clusterFlags
	p         *program
	namespace string
}

// tags runs a command over the tags of the cluster.
func (f *tagFlags) tags(c *cobra.Command, run func(c *cobra.Command, t webhooks.Tags) error) error {
	client, ctx, cancel, err := f.client(f.p, c)
	if err != nil {
		return err
	}
	defer cancel()
	c.SetContext(ctx)
	return run(c, webhooks.Tags{Objects: client, Namespace: f.namespace})
}

// one reads the name of a tag.
func one(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s wants the name of one tag; see %s --help", c.CommandPath(), c.CommandPath())}
	}
	return nil
}

// wanted gives a command the flags that say how a tag is to be.
func wanted(c *cobra.Command, w *webhooks.Wanted) {
	c.Flags().StringVarP(&w.Revision, "revision", "r", "", "the revision that the tag is to stand for; that which has none is called default")
	c.Flags().BoolVar(&w.Overwrite, "overwrite", false, "move a tag that is there, and take the name of a revision")
	c.Flags().BoolVar(&w.Everywhere, "auto-inject-namespaces", false, "of the tag default: ask about pods without labels in namespaces without labels, too")
	c.Flags().StringVar(&w.Name, "webhook-name", "", "name of the MutatingWebhookConfiguration, in place of istio-revision-tag-TAG")
}

func (f *tagFlags) set() *cobra.Command {
	var w webhooks.Wanted
	c := &cobra.Command{
		Use: "set TAG --revision REVISION", Short: "Make a tag, or move it to another revision", Args: one,
		Long: `Set makes a tag or, with --overwrite, moves it. Of the tag default, the webhooks of the default revision are put out of use, whose part it takes: remove puts them back. With two that ask about the same pods at
once nothing is lost, so that they go last.`,
		RunE: func(c *cobra.Command, args []string) error {
			w.Tag = args[0]
			if w.Revision == "" {
				return usageError{errors.New("coxswain tag set wants --revision")}
			}
			return f.tags(c, func(c *cobra.Command, t webhooks.Tags) error {
				lines, err := t.Set(c.Context(), w)
				f.say(lines)
				if err != nil {
					return err
				}
				fmt.Fprintf(f.p.out, "the tag %s stands for the revision %s: kubectl label namespace NAME istio.io/rev=%s\n", w.Tag, w.Revision, w.Tag)
				return nil
			})
		},
	}
	wanted(c, &w)
	return c
}

func (f *tagFlags) say(lines []string) {
	for _, l := range lines {
		fmt.Fprintln(f.p.out, l)
	}
}

func (f *tagFlags) generate() *cobra.Command {
	var w webhooks.Wanted
	c := &cobra.Command{
		Use: "generate TAG --revision REVISION", Short: "Print what a tag is made of, for kubectl apply; nothing is changed", Args: one,
		RunE: func(c *cobra.Command, args []string) error {
			w.Tag = args[0]
			if w.Revision == "" {
				return usageError{errors.New("coxswain tag generate wants --revision")}
			}
			return f.tags(c, func(c *cobra.Command, t webhooks.Tags) error {
				m, err := t.Make(c.Context(), w)
				if err != nil {
					return err
				}
				for _, name := range m.Others {
					fmt.Fprintf(f.p.err, "MutatingWebhookConfiguration/%s asks about the same pods: coxswain tag set puts it out of use\n", name)
				}
				return printObjects(f.p.out, m.Objects()...)
			})
		},
	}
	wanted(c, &w)
	return c
}

func (f *tagFlags) list() *cobra.Command {
	a := &asked{p: f.p}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"show"}, Short: "Show tags, their revisions, and the namespaces that have them", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			return f.tags(c, func(c *cobra.Command, t webhooks.Tags) error {
				all, err := t.List(c.Context())
				if err != nil {
					return err
				}
				return a.print(all, func(w io.Writer, _ bool) {
					fmt.Fprintln(w, "TAG\tREVISION\tNAMESPACES")
					for _, t := range all {
						revision := t.Revision
						if t.Gone {
							revision += " (gone)"
						}
						fmt.Fprintf(w, "%s\t%s\t%s\n", t.Tag, revision, cmp.Or(strings.Join(t.Namespaces, ","), "-"))
					}
				})
			})
		},
	}
	formatFlag(c, &a.format)
	return c
}

func (f *tagFlags) remove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove TAG", Aliases: []string{"delete"}, Short: "Take a tag away", Args: one,
		Long: `Remove takes a tag away. Pods of namespaces that have it get no proxy from then on; where there are such namespaces, it wants --yes.`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.tags(c, func(c *cobra.Command, t webhooks.Tags) error {
				all, err := t.List(c.Context())
				if err != nil {
					return err
				}
				for _, is := range all {
					if is.Tag == args[0] && len(is.Namespaces) > 0 && !yes {
						return fmt.Errorf("%d of the cluster's namespaces have the tag %s, and would get no more proxies: %s; --yes removes it all the same",
							len(is.Namespaces), is.Tag, strings.Join(is.Namespaces, ", "))
					}
				}
				lines, err := t.Remove(c.Context(), args[0])
				f.say(lines)
				return err
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "remove a tag that namespaces have")
	return c
}
