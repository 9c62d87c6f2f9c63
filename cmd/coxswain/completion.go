package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/coxswain-mesh/coxswain/cmd/internal/scaffold"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/levels"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/spf13/cobra"
)

// completionPatience is how long a shell waits for names of a running control plane.
const completionPatience = 2 * time.Second

// completeAll tells the shell, for all commands below one, what flags and arguments may be: fixed
// words, and the names of what runs.
func completeAll(p *program, c *cobra.Command) {
	completeWith(c, flagWords(), liveFlags(p), liveArguments(p))
}

// askedFor returns what lists names of something that runs, asked for p.
func askedFor(p *program) func(list func(*program, *cobra.Command) []string) func(*cobra.Command) []string {
	return func(list func(*program, *cobra.Command) []string) func(*cobra.Command) []string {
		return func(c *cobra.Command) []string { return list(p, c) }
	}
}

// liveFlags are what flags may be that name what runs, by the commands' paths.
func liveFlags(p *program) map[string]map[string]func(*cobra.Command) []string {
	of := askedFor(p)
	return map[string]map[string]func(*cobra.Command) []string{
		"coxswain diff":  {"from": of(liveRevisions), "to": of(liveRevisions), "proxy": of(connectedProxies)},
		"coxswain pin":   {"proxies": of(connectedProxies)},
		"coxswain unpin": {"proxies": of(livePins)},
	}
}

func completeWith(c *cobra.Command, flags map[string][]string, live map[string]map[string]func(*cobra.Command) []string, arguments map[string]completer) {
	for flag, words := range flags {
		if f := c.Flags().Lookup(flag); f != nil {
			if flag == "output" {
				words = outputs(f.Usage)
			}
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // twice is no harm
		}
	}
	for flag, words := range live[c.CommandPath()] {
		_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return words(c), cobra.ShellCompDirectiveNoFileComp
		})
	}
	if named := arguments[c.CommandPath()]; named != nil {
		c.ValidArgsFunction = named
	} else if !takesFiles[c.CommandPath()] {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		completeWith(sub, flags, live, arguments)
	}
}

// takesFiles are the commands whose arguments are files, which the shell offers.
var takesFiles = map[string]bool{
	"coxswain analyze": true, "coxswain test": true, "coxswain validate": true, "coxswain plugins plan": true,
	"coxswain plugins replay": true, "coxswain plugins test": true,
}

// flagWords are what flags may be that take one of a few words.
func flagWords() map[string][]string {
	return map[string][]string{
		"kind": manifest.Kinds(), "lang": scaffold.Languages(), "builtin": names(),
		"logLevel": settings.Levels(), "logFormat": settings.Formats(),
		"tls-min-version": {"1.2", "1.3"},
		"type":            {bootstrap.Sidecar, bootstrap.Router}, "protocol": {bootstrap.SotW, bootstrap.Delta}, "interception": {"REDIRECT", "TPROXY", "NONE"},
		"output": nil, "for": {"acked", "served", "gone"},
	}
}

// outputs reads the formats from a usage such as "text, json or sarif".
func outputs(usage string) []string {
	usage, _, _ = strings.Cut(usage, ", one ") // of top
	return strings.Fields(strings.NewReplacer(",", " ", " or ", " ").Replace(cmp.Or(usage, report.Formats)))
}

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// liveArguments are what commands' arguments may be, by the commands' paths.
func liveArguments(p *program) map[string]completer {
	of := askedFor(p)
	all := map[string]completer{
		"coxswain explain-code": first(func(*cobra.Command) []string { return ids() }),
		"coxswain plugin":       first(func(*cobra.Command) []string { return names() }),
		"coxswain route":        first(of(connectedProxies)),
		"coxswain explain": func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return explainArguments(p, c, args, begun)
		},
		"coxswain proxy-status": first(of(connectedProxies)),
		"coxswain pin":          first(of(liveRevisions)),
		"coxswain impact":       first(of(liveRows)),
		"coxswain wait":         first(of(liveRows)),
		"coxswain request":      inTurn(func(*cobra.Command) []string { return []string{"GET", "POST"} }, of(livePages)),
		"coxswain plugins pin":  afterFile(of(livePlugins)),
		"coxswain log set": func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return liveLevels(p, c, begun)
		},
	}
	for _, what := range []string{"swap", "restart", "disable", "enable", "show", "rollback", "log"} {
		all["coxswain plugins "+what] = first(of(livePlugins))
	}
	all["coxswain plugins record"] = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveDefault // the file
		}
		return first(of(livePlugins))(c, args, begun)
	}
	for _, what := range []string{"show", "apply", "drop"} {
		all["coxswain hold "+what] = first(of(livePlugins))
	}
	return all
}

// first completes the first argument.
func first(of func(*cobra.Command) []string) completer { return inTurn(of) }

// inTurn completes arguments, the first with what the first function returns, and so on.
func inTurn(of ...func(*cobra.Command) []string) completer {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return begunWith(of[len(args)](c), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// begunWith are the words that begin as what is typed already, in whatever case.
func begunWith(words []string, begun string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(strings.ToLower(w), strings.ToLower(begun)) })
}

// afterFile completes a file, and then words, as often as there are any.
func afterFile(of func(*cobra.Command) []string) completer {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return begunWith(of(c), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// addressMeant is the HTTP port of the control plane that a command means.
func addressMeant(p *program, c *cobra.Command) string {
	addr := ""
	if f := c.Flags().Lookup("addr"); f != nil {
		addr = f.Value.String()
	}
	return cmp.Or(addr, p.variable(addrVariable), settings.Defaults().HTTPAddr)
}

// livePage decodes a page of the control plane that a command means. What can't be had completes
// nothing.
func livePage(p *program, c *cobra.Command, path string, into any) {
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	if raw, err := get(ctx, addressMeant(p, c), path); err == nil {
		_ = json.Unmarshal(raw, into)
	}
}

func livePlugins(p *program, c *cobra.Command) (all []string) {
	var list []admin.Plugin
	livePage(p, c, "/debug/plugins", &list)
	for _, one := range list {
		all = append(all, one.Name)
	}
	return all
}

// connectedProxies returns the short names of the connected proxies, NAME.NAMESPACE, or what their
// IDs are where they have none.
func connectedProxies(p *program, c *cobra.Command) (all []string) {
	var page syncPage
	livePage(p, c, "/debug/streams", &page)
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

// liveRows returns the names of config objects, KIND/NAMESPACE/NAME.
func liveRows(p *program, c *cobra.Command) (all []string) {
	var list []admin.Object
	livePage(p, c, "/debug/configs", &list)
	for _, o := range list {
		if o.Kind != "" && o.Key != "" {
			all = append(all, o.Kind+"/"+o.Key)
		}
	}
	return all
}

// livePages returns the paths of debug pages.
func livePages(p *program, c *cobra.Command) (all []string) {
	livePage(p, c, "/debug/list", &all)
	for i := range all {
		all[i] = "/debug/" + all[i]
	}
	return all
}

// liveLevels completes AREA=LEVEL.
func liveLevels(p *program, c *cobra.Command, begun string) ([]string, cobra.ShellCompDirective) {
	if area, _, chosen := strings.Cut(begun, "="); chosen {
		var all []string
		for _, level := range append(settings.Levels(), levels.Default) {
			all = append(all, area+"="+level)
		}
		return begunWith(all, begun), cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	var at which
	at.addr, at.admin = c.Flag("addr").Value.String(), c.Flag("admin").Value.String()
	var got api.LogLevels
	_, _, _ = ask(ctx, p, at, http.MethodGet, "/log", nil, &got) // without an answer there are none
	var all []string
	for _, one := range got.Areas {
		all = append(all, one.Area+"=")
	}
	return begunWith(all, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// explainArguments completes a proxy, a type of resource, and a resource of that proxy.
func explainArguments(p *program, c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var words []string
	switch len(args) {
	case 0:
		words = connectedProxies(p, c)
	case 1:
		words = slices.Sorted(maps.Keys(resourceTypes))
	case 2:
		words = resourcesOf(p, c, args[0], typeNamed(args[1]))
	}
	return begunWith(words, begun), cobra.ShellCompDirectiveNoFileComp
}

// resourcesOf are the names of a proxy's resources of a type.
func resourcesOf(p *program, c *cobra.Command, name, want string) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	node, err := connected(ctx, addressMeant(p, c), name)
	if err != nil {
		return nil
	}
	var proxy admin.Proxy
	livePage(p, c, "/debug/explain?proxyID="+url.QueryEscape(node), &proxy)
	for _, t := range proxy.Types {
		for _, n := range t.Names {
			if show.IsType(t.Type, want) {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
