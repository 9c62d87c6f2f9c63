package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/coxswain-mesh/coxswain/cmd/internal/scaffold"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
)

// completionPatience is how long a shell waits for names of a running control plane.
const completionPatience = 2 * time.Second

// complete tells the shell, for all commands below one, what flags and arguments may be: fixed
// words, and the names of what runs.
func (p *program) complete(c *cobra.Command) { completeWith(c, flagWords(), p.arguments()) }

func completeWith(c *cobra.Command, flags map[string][]string, arguments map[string]completer) {
	for flag, words := range flags {
		if f := c.Flags().Lookup(flag); f != nil {
			if flag == "output" {
				words = outputs(f.Usage)
			}
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // twice is no harm
		}
	}
	if named := arguments[c.CommandPath()]; named != nil {
		c.ValidArgsFunction = named
	}
	for _, sub := range c.Commands() {
		completeWith(sub, flags, arguments)
	}
}

// flagWords are what flags may be that take one of a few words.
func flagWords() map[string][]string {
	return map[string][]string{
		"kind": manifest.Kinds(), "lang": scaffold.Languages(), "builtin": names(),
		"logLevel": settings.Levels(), "logFormat": settings.Formats(),
		"tls-min-version": {"1.2", "1.3"},
		"type":            {bootstrap.Sidecar, bootstrap.Router}, "protocol": {bootstrap.SotW, bootstrap.Delta}, "interception": {"REDIRECT", "TPROXY", "NONE"},
		"output": nil,
	}
}

// outputs reads the formats from a usage such as "text, json or sarif".
func outputs(usage string) []string {
	usage, _, _ = strings.Cut(usage, ", one ") // of top
	return strings.Fields(strings.NewReplacer(",", " ", " or ", " ").Replace(cmp.Or(usage, report.Formats)))
}

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// arguments are what commands' arguments may be, by the commands' paths.
func (p *program) arguments() map[string]completer {
	all := map[string]completer{
		"coxswain explain-code": first(func(*cobra.Command) []string { return ids() }),
		"coxswain plugin":       first(func(*cobra.Command) []string { return names() }),
		"coxswain route":        first(p.liveProxies),
	}
	for _, what := range []string{"swap", "restart", "disable", "enable", "show", "record", "rollback", "log"} {
		all["coxswain plugins "+what] = first(p.livePlugins)
	}
	for _, what := range []string{"show", "apply", "drop"} {
		all["coxswain hold "+what] = first(p.livePlugins)
	}
	return all
}

// first completes the first argument; for others the shell offers files.
func first(words func(*cobra.Command) []string) completer {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		found := slices.DeleteFunc(words(c), func(w string) bool { return !strings.HasPrefix(strings.ToLower(w), strings.ToLower(begun)) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// page decodes a page of the control plane that a command means. What can't be had completes
// nothing.
func (p *program) page(c *cobra.Command, path string, into any) {
	addr := cmp.Or(p.variable(addrVariable), settings.Defaults().HTTPAddr)
	if f := c.Flags().Lookup("addr"); f != nil && f.Value.String() != "" {
		addr = f.Value.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	if raw, err := get(ctx, addr, path); err == nil {
		_ = json.Unmarshal(raw, into)
	}
}

func (p *program) livePlugins(c *cobra.Command) (all []string) {
	var list []admin.Plugin
	p.page(c, "/debug/plugins", &list)
	for _, one := range list {
		all = append(all, one.Name)
	}
	return all
}

// liveProxies returns the short names of the connected proxies, NAME.NAMESPACE, or what their IDs
// are where they have none.
func (p *program) liveProxies(c *cobra.Command) (all []string) {
	var page syncPage
	p.page(c, "/debug/syncz", &page)
	for _, s := range page.Streams {
		if id, ok := istio.ParseNodeID(s.Node); ok {
			all = append(all, id.Short())
		} else {
			all = append(all, s.Node)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
