package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/spf13/cobra"
)

func explainCodeCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "explain-code [CODE]",
		Short: "Say what a code of validate, analyze and the log means, with a wrong and a right example; without one: list all",
		Example: `  coxswain explain-code COX1003
  coxswain explain-code`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, c := range codes() {
					fmt.Fprintf(p.out, "%s  %s\n", c.ID, c.Title)
				}
				return nil
			}
			code, ok := explain(strings.ToUpper(args[0]))
			if !ok {
				return usageError{fmt.Errorf("there is no code %s%s; coxswain explain-code lists all", args[0], settings.Hint(args[0], ids()))}
			}
			show.Code(p.out, code)
			return nil
		},
	}
}

// codes returns all codes, sorted by id.
func codes() []finding.Code {
	all := slices.Concat(validation.Codes(), analysis.Codes())
	slices.SortFunc(all, func(a, b finding.Code) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func ids() (list []string) {
	for _, c := range codes() {
		list = append(list, c.ID)
	}
	return list
}

// explain returns what there is to know about a code.
func explain(id string) (finding.Code, bool) {
	for _, c := range codes() {
		if c.ID == id {
			return c, true
		}
	}
	return finding.Code{}, false
}
