package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

// errDiffers is what --exit-code makes of a difference, which is printed already.
var errDiffers = errors.New("proxies would get something else (--exit-code)")

// live is what --against says for the control plane that runs.
const live = "live"

// planning is what flags say of a plan.
type planning struct {
	p               *program
	next, against   plan.Side
	addr            string
	proxies, output string
	exitCode        bool
	patience        time.Duration
}

func planCommand(p *program) *cobra.Command {
	n := &planning{p: p, addr: cmp.Or(p.variable(addrVariable), settings.Defaults().HTTPAddr), patience: time.Minute}
	c := &cobra.Command{
		Use:   "plan -f NEW [--against OLD --proxies FILE]",
		Short: "Show what an edit of the configuration, other plugins, or another version of this program, would change for proxies",
		Long: `Plan shows, field by field, what proxies would get instead of what they get. Those that differ alike are shown once. Nothing is changed.

Without --against (or with --against live) it is a running control plane that is compared: what its connected proxies are to have now, as its debug pages say, and what
a second one makes for the same proxies, which runs on this machine, on loopback and for as long as it takes, with the directory NEW in the place of what configures the
first. The second one has the settings and plugins.yaml of the first where that runs here under the same user, so that it reads the same registries; with
--plugins FILE others. Its controllers don't run, so that it writes nothing.

With --against OLD both are started so, one for each directory, with the plugins of the built-in set for files or those of --plugins, and each of the proxies in FILE asks
both, as an Envoy does, for clusters, endpoints, listeners, routes and extensions. FILE is what coxswain record proxies writes, or written by hand: YAML or JSON, in which
each proxy has a node, as bootstraps have it (coxswain bootstrap prints one):

  proxies:
  - node: {id: sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local, metadata: {NAMESPACE: shop, LABELS: {app: web}}}

Secrets are not compared, but the names by which listeners and clusters refer to them are. What is refused of NEW is shown with its place, and isn't served.

The exit status is 0, or 1 with --exit-code if proxies would get something else; 2 for a command line that can't be, and for what went wrong.`,
		Example: `  coxswain plan -f config/                                                                            against what runs
  coxswain plan -f config/ --plugins plugins-new.yaml                                                 with other plugins
  coxswain plan -f config/ --against main/config/ --proxies proxies.yaml -o markdown --exit-code
  coxswain plan -f config/ --against config/ --proxies proxies.yaml --against-program ./coxswain-old  review an upgrade
  coxswain plan -f config/ --against config/ --proxies proxies.yaml --against-plugins plugins.yaml --plugins plugins-new.yaml`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			made, err := n.make(c.Context())
			if err == nil {
				err = n.write(made)
			}
			if err != nil {
				return usageError{err} // 1 says that there is a difference
			}
			if n.exitCode && !made.Empty() {
				return errDiffers
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVarP(&n.next.Dir, "filename", "f", "", "directory with the new resources")
	f.StringVar(&n.against.Dir, "against", live, "directory with those that are compared with it, or live: what a running control plane serves")
	f.StringVar(&n.addr, "addr", n.addr, "address of its HTTP port ($"+addrVariable+")")
	f.StringVar(&n.proxies, "proxies", "", "file with the proxies that ask; of live, those that are connected")
	f.StringVar(&n.next.Plugins, "plugins", "", "plugins.yaml to run; for --against, too, if it is a directory")
	f.StringVar(&n.against.Plugins, "against-plugins", "", "another one for --against")
	f.StringVar(&n.next.MeshConfig, "meshConfig", "", "file with the mesh's settings (MeshConfig)")
	f.StringVar(&n.against.MeshConfig, "against-meshConfig", "", "the same for --against, if it has others")
	f.StringVar(&n.next.NetworksConfig, "networksConfig", "", "file with the mesh's networks (MeshNetworks)")
	f.StringVar(&n.against.NetworksConfig, "against-networksConfig", "", "the same for --against, if it has others")
	f.StringVar(&n.against.Program, "against-program", "", "path of another coxswain that serves --against")
	f.BoolVar(&n.exitCode, "exit-code", false, "exit with 1 if proxies would get something else")
	f.DurationVar(&n.patience, "timeout", n.patience, "how long each control plane may take to start, and to answer a proxy")
	f.StringVarP(&n.output, "output", "o", "table", "table, wide, json, yaml or markdown")
	return c
}

// markdown is a format of plans alone: for a comment on a change.
const markdown = "markdown"

func (n *planning) write(made *plan.Plan) error {
	if n.output == markdown {
		return made.Write(n.p.out, true, false)
	}
	return (&asked{p: n.p, format: n.output}).print(made, func(w io.Writer, wide bool) { _ = made.Write(w, false, wide) })
}

// check reports whether the flags can be.
func (n *planning) check() error {
	a := n.against
	switch {
	case n.next.Dir == "" || a.Dir == "":
		return errors.New("coxswain plan wants -f NEW, a directory; see coxswain plan --help")
	case a.Dir != live && n.proxies == "":
		return errors.New("--against OLD wants --proxies FILE, too (coxswain record proxies writes one); see coxswain plan --help")
	case a.Dir == live && n.proxies != "":
		return errors.New("with --against live those proxies ask that are connected: leave --proxies out, or name a directory (live is one as ./live)")
	case a.Dir == live && a.Program+a.Plugins+a.MeshConfig+a.NetworksConfig != "":
		return errors.New("--against live is a control plane that runs as it does: leave out --against-program, " +
			"--against-plugins, --against-meshConfig and --against-networksConfig")
	case n.output != markdown && !slices.Contains(show.Formats(), n.output):
		return fmt.Errorf("--output is %s or markdown, not %q", strings.Join(show.Formats(), ", "), n.output)
	case n.patience <= 0:
		return fmt.Errorf("--timeout is longer than 0, not %s", n.patience)
	}
	return nil
}

func (n *planning) make(ctx context.Context) (*plan.Plan, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own path: %w", err)
	}
	next, against := n.next, n.against
	next.Flag, next.Program, next.Environ = "-f", own, n.p.environ
	if against.Dir == live {
		return n.againstLive(ctx, next)
	}
	proxies, err := plan.ReadProxies(n.proxies)
	if err != nil {
		return nil, err
	}
	against.Flag, against.Program, against.Environ = "--against", cmp.Or(against.Program, own), n.p.environ
	against.Plugins = cmp.Or(against.Plugins, next.Plugins)
	against.MeshConfig, against.NetworksConfig = cmp.Or(against.MeshConfig, next.MeshConfig), cmp.Or(against.NetworksConfig, next.NetworksConfig)
	return n.compared(ctx, against, next, proxies)
}

// againstLive compares with a control plane that runs.
func (n *planning) againstLive(ctx context.Context, next plan.Side) (*plan.Plan, error) {
	running := plan.Live{Addr: n.addr, Get: func(ctx context.Context, page string) (int, []byte, error) {
		return call(ctx, "GET", n.addr, page, nil)
	}}
	proxies, err := running.Proxies(ctx)
	if err != nil {
		return nil, orElsewhere(ctx, n.p, err)
	}
	if next.Inputs, err = inputsOf(ctx, n.p, n.addr); err != nil {
		return nil, err
	}
	if next.Inputs == nil {
		fmt.Fprintf(n.p.err, "%s is no control plane of this user on this machine, so that its settings are not known: the second one runs with %s\n",
			n.addr, cmp.Or(next.Plugins, "the built-in set for files"))
	}
	return n.compared(ctx, running, next, proxies)
}

// compared makes the plan, and says on a terminal how far it is.
func (n *planning) compared(ctx context.Context, against, next plan.Source, proxies []plan.Proxy) (*plan.Plan, error) {
	g := progressOf(n.p)
	defer g.over()
	return plan.Make(ctx, against, next, proxies, n.patience, func(done [2]int) {
		g.says(fmt.Sprintf("%s: %d asked of --against, %d of -f", show.Many(len(proxies), "proxy"), done[0], done[1]))
	})
}

// inputsOf returns the settings of the control plane of this user at an address; nil: there is none
// there.
func inputsOf(ctx context.Context, p *program, addr string) (map[string]string, error) {
	all, err := cores(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.At(ctx, addr) {
			return f.Inputs, nil
		}
	}
	return nil, nil
}
