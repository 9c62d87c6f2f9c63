package main

import (
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

func viewsCommand(p *program) *cobra.Command {
	return listing(p, &cobra.Command{
		Use:   "views",
		Short: "Show the views of a running control plane: how many per type, and what splits them",
		Example: `  coxswain views
  coxswain views -o json`,
	}, "/debug/views", show.Views)
}
