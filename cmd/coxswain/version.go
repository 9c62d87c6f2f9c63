package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprint(p.out, versionLine())
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("coxswain %s (%s %s/%s)\n", build(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
