package main

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/spf13/cobra"
	admission "k8s.io/api/admissionregistration/v1"
)

// webhooksCommand prints the configurations of webhooks.
func webhooksCommand(p *program) *cobra.Command {
	var h webhooks.Config
	var again string
	c := &cobra.Command{
		Use:   "webhooks",
		Short: "Print what has an API server ask controller/injector and controller/validator",
		Long: `Print a MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, for kubectl apply. A control plane with --httpsAddr and the two plugins, which the set for a cluster
has, answers them, and writes its CA's root into them. Asked are: about pods of namespaces with the label istio-injection=enabled, or istio.io/rev with the revision, and about pods with the label
sidecar.istio.io/inject=true in other namespaces; about resources of Istio's kinds, of the default revision those without the label istio.io/rev, too. Never asked about are pods of kube-system, kube-public,
kube-node-lease and the control plane's own namespace: what it needs to start can always be created.

The validating one begins with failurePolicy Ignore, which controller/validator makes Fail once it was seen to refuse. coxswain uninstall --webhooks removes them; coxswain tag gives a revision another name.`,
		Example: `  coxswain webhooks | kubectl apply -f -
  coxswain webhooks --revision canary --service coxswain | kubectl apply -f -`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			h.Again = admission.ReinvocationPolicyType(again)
			if err := h.Check(); err != nil {
				return usageError{err}
			}
			objects := []any{h.Injecting()}
			if v := h.Judging(); v != nil {
				objects = append(objects, v)
			}
			return printObjects(p.out, objects...)
		},
	}
	c.Flags().StringVar(&h.Revision, "revision", "", "the control plane's revision; empty: the default one")
	c.Flags().StringVar(&h.Tag, "tag", "",
		"a name for the revision: print what a tag is made of, as coxswain tag generate does, without asking a cluster; the root is not in it")
	c.Flags().StringVar(&h.Namespace, "namespace", "istio-system", "the control plane's namespace")
	c.Flags().StringVar(&h.Service, "service", "istiod", "the Service by which an API server reaches port httpsAddr, as its port 443")
	c.Flags().StringVar(&h.URL, "url", "", "https://HOST:PORT of httpsAddr, for a control plane outside of the cluster, in place of a Service")
	c.Flags().StringVar(&h.Account, "account", "coxswain",
		"the control plane's service account, which coxswain tag gives the right to keep its root in tags' configurations; empty: none")
	c.Flags().BoolVar(&h.Everywhere, "auto-inject-namespaces", false,
		"ask about pods without labels in namespaces without labels, too; of the default revision alone")
	c.Flags().StringVar(&again, "reinvocation", string(admission.IfNeededReinvocationPolicy),
		"whether the injector is asked again once others have changed a pod: IfNeeded or Never")
	return c
}

// printObjects prints objects for kubectl apply.
func printObjects(out io.Writer, objects ...any) error {
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
