package main

import (
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

func recordCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "record",
		Short: "Write down what a running control plane knows, for other commands",
		Args:  noArgs,
	}
	c.AddCommand(recordProxies(p))
	return c
}

func recordProxies(p *program) *cobra.Command {
	var addr string
	var file string
	c := &cobra.Command{
		Use:   "proxies",
		Short: "Write down the connected proxies, as coxswain plan --proxies reads them",
		Long: `Write down the connected proxies as YAML: the node of each, and the names that it subscribes to by type, in order of their ids.

Values of metadata whose names say that they are secret (password, token, key and the like), and private keys, are replaced by [redacted]. Credentials are no
part of a node. Of the extensions that Envoys know there are the names, each list of them once.`,
		Example: `  coxswain record proxies -o proxies.yaml
  coxswain plan -f config/ --against main/config/ --proxies proxies.yaml
  coxswain record proxies --from report.zip`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			raw, err := get(c.Context(), addr, nodesPage)
			if err != nil {
				return orElsewhere(c.Context(), p, err)
			}
			text, err := yaml.JSONToYAML(raw)
			if err != nil {
				return fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", addr, nodesPage, err)
			}
			proxies, err := plan.ParseProxies(text)
			switch {
			case err != nil:
				return fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", addr, nodesPage, err)
			case len(proxies) == 0:
				return fmt.Errorf("no proxy is connected to %s", addr)
			case file == "":
				_, err := p.out.Write(text)
				return err
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s: proxies: %d\n", file, len(proxies))
			return nil
		},
	}
	fromFlag(c, &addr)
	addrFlag(p, c, &addr)
	c.Flags().StringVarP(&file, "output", "o", "", "file to write (default: standard output)")
	return c
}

const nodesPage = "/debug/nodes"
