package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
)

func uiCommand(p *program) *cobra.Command {
	var addr string
	var open bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Print the address of the page that shows how a control plane is, or open it",
		Long: `Print the address of the page that shows how a control plane is, or open it in a browser (--open).

The page is on the monitoring port, for those who may see debug pages: on its own machine for everybody, from elsewhere through a tunnel, such as
kubectl port-forward deployment/coxswain -n istio-system 15014, and then here. It changes nothing.`,
		Example: `  coxswain ui
  coxswain ui --open`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := get(c.Context(), addr, "/ui/"); err != nil {
				return p.elsewhere(c.Context(), err)
			}
			url := "http://" + addr + "/ui/"
			fmt.Fprintln(p.out, url)
			if !open {
				return nil
			}
			if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
				return usageError{errors.New("--open wants --addr HOST:PORT")}
			}
			with := cmp.Or(map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS], "xdg-open")
			if err := exec.CommandContext(c.Context(), with, url).Run(); err != nil {
				return fmt.Errorf("the address could not be opened by %s: %w", with, err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&addr, "addr", settings.Defaults().MonitoringAddr, "address of the monitoring port")
	c.Flags().BoolVar(&open, "open", false, "open it in a browser")
	return c
}
