package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/plugins/controller/gateway"
)

// gatewaysCommand is about what is deployed for Gateways of a cluster.
func gatewaysCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "gateways", Short: "Take out of a cluster what controller/gateway has deployed", Args: noArgs}
	l := gateway.Leaving{Say: func(text string) { fmt.Fprintln(p.out, text) }}
	remove := &cobra.Command{
		Use:   "remove",
		Short: "Delete what was deployed for Gateways, or leave it to istiod",
		Long: `Delete the Deployments, Services, service accounts, autoscalers and disruption budgets that controller/gateway has made for Gateways, and what it said in their statuses; what istiod or somebody else
has made stays. With --keep they stay, too, and belong to istiod, which goes on with them as with its own.

It asks the API server itself, as kubectl does, and needs the rights of deploy/kubernetes/gateways.yaml. While somebody deploys gateways, whom the Lease istio-gateway-deployment-REVISION names, it
does nothing: what is deleted would come back.`,
		Example: `  coxswain gateways remove --keep
  coxswain gateways remove --in shop --kubeconfig ~/.kube/config`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return l.Run(c.Context()) },
	}
	f := remove.Flags()
	f.StringVar(&l.Kubeconfig, "kubeconfig", "", "file with the API server's address and credentials; empty: as kubectl finds it")
	f.StringVar(&l.Context, "context", "", "which of its contexts; empty: its current one")
	f.StringVar(&l.Namespace, "namespace", "istio-system", "the control plane's namespace, which has the Lease")
	f.StringVar(&l.In, "in", "", "the namespace whose objects go; empty: all")
	f.BoolVar(&l.Keep, "keep", false, "keep the objects, and make them istiod's")
	f.BoolVar(&l.Force, "force", false, "don't look whether somebody deploys gateways")
	c.AddCommand(remove)
	return c
}
