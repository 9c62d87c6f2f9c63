package main

import (
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

func unpinCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	var order api.PinOrder
	c := &cobra.Command{
		Use:   "unpin",
		Short: "Have pinned proxies served again what is live",
		Long: `Take away all pins or, with --proxies, that of the same SELECTOR: the proxies are served what is live. coxswain pin lists the pins; coxswain plan and
coxswain diff say what there is now. Guards don't judge what proxies lose by that.`,
		Example: `  coxswain unpin
  coxswain unpin --proxies namespace=shop`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			order.All = !c.Flags().Changed("proxies")
			order.Proxies = selector(order.Proxies)
			return a.pins(c.Context(), at, http.MethodDelete, order)
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	c.Flags().StringVar(&order.Proxies, "proxies", "", "`SELECTOR` of the pin (default: all pins)")
	return c
}
