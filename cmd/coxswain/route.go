package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/question"
	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/spf13/cobra"
)

func routeCommand(p *program) *cobra.Command {
	a := &asked{p: p}
	var dump string
	var q question.Question
	c := &cobra.Command{
		Use:   "route [NODE] URL",
		Short: "Say where a request through a proxy would go, and why",
		Long: `Say where a request through a proxy would go, and why.

The proxy's listeners, routes, clusters and endpoints are walked through as Envoy does it; nothing is sent. NODE is a connected proxy: its ID, or
NAME.NAMESPACE as it stands there. --dump reads what a proxy has from a file instead, as Envoy shows it under /config_dump?include_eds (-: from
standard input). URL is http://HOST[:PORT]/PATH, https://… for a client that opens TLS, or tcp://IP:PORT for bytes.

A sidecar gets what its workload sends, or with --inbound what others send to its workload. Where --to doesn't say where the client connects to, it
is a listener of the URL's port, for what a workload sends an address that is nobody's, for what is sent to it the proxy's own.`,
		Example: `  coxswain route gateway.edge http://shop.example/cart
  coxswain route web.shop http://reviews.shop:9080/ -H 'end-user: jason'
  coxswain route web.shop http://web.shop:8080/admin -X POST --inbound --peer spiffe://cluster.local/ns/shop/sa/cart
  coxswain route web.shop tcp://10.96.0.10:9000
  curl -s localhost:15000/config_dump?include_eds | coxswain route --dump - http://shop.example/ --to 10.0.0.1:443 --sni shop.example`,
		Args: func(_ *cobra.Command, args []string) error {
			if want := 2 - min(1, len(dump)); len(args) != want {
				return usageError{errors.New("coxswain route wants NODE URL, such as: coxswain route gateway.edge " +
					"http://shop.example/; with --dump FILE only the URL")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if strings.HasSuffix(q.From, ".zip") { // as --from of all other commands
				a.addr, q.From = archived+q.From, ""
			}
			raw, node, err := dumpOfProxy(c.Context(), p, a.addr, dump, args[0])
			if err != nil {
				return err
			}
			config, err := simulator.Read(raw)
			if err != nil {
				return err
			}
			conn, request, err := q.Ask(config, node, args[len(args)-1])
			if err != nil {
				return usageError{err}
			}
			went := config.Walk(conn, request)
			if dump == "" {
				a.places(c.Context()).Say(went)
			}
			return a.print(went, func(w io.Writer, _ bool) { fmt.Fprint(w, went) })
		},
	}
	addrFlag(p, c, &a.addr)
	archiveFlag(c, "archive", &a.addr)
	c.Flags().StringVar(&dump, "dump", "", "file with a proxy's configuration dump, instead of NODE")
	formatFlag(c, &a.format)
	q.Flags(c.Flags())
	return c
}

// places are those of the objects that the control plane has; none where it doesn't say.
func (a *asked) places(ctx context.Context) rules.Places {
	var objects []admin.Object
	places := rules.Places{}
	if a.page(ctx, "/debug/configs", &objects) == nil {
		for _, o := range objects {
			places.Add(o.Kind, o.Key, o.Source, o.Of)
		}
	}
	return places
}

// dumpOfProxy returns a configuration dump and, if it is a connected proxy's, the node's ID.
func dumpOfProxy(ctx context.Context, p *program, addr, dump, name string) (raw []byte, node string, err error) {
	switch dump {
	case "":
		if node, err = connected(ctx, addr, name); err != nil {
			return nil, "", err
		}
		raw, err = get(ctx, addr, "/debug/config_dump?proxyID="+url.QueryEscape(node))
	case "-":
		raw, err = io.ReadAll(p.in)
	default:
		raw, err = os.ReadFile(dump)
	}
	return raw, node, err
}

// syncPage is what of /debug/streams is read here.
type syncPage struct {
	Streams []struct {
		Node string `json:"node"`
	} `json:"streams"`
}

// connected finds the node that a name means among those that are connected.
func connected(ctx context.Context, addr, name string) (string, error) {
	raw, err := get(ctx, addr, "/debug/streams")
	if err != nil {
		return "", err
	}
	var page syncPage
	if err := json.Unmarshal(raw, &page); err != nil {
		return "", fmt.Errorf("http://%s/debug/streams: %w; is it a control plane of this version?", addr, err)
	}
	var all, found []string
	for _, s := range page.Streams {
		all = append(all, s.Node)
		if s.Node == name || slices.Contains(strings.Split(s.Node, "~"), name) {
			found = append(found, s.Node)
		}
	}
	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 1:
		return found[0], nil
	case 0:
		if len(all) == 0 {
			return "", fmt.Errorf("no proxy %q is connected, nor any other", name)
		}
		slices.Sort(all)
		return "", fmt.Errorf("no proxy %q is connected; these are:\n  %s", name, strings.Join(slices.Compact(all), "\n  "))
	}
	return "", fmt.Errorf("%q may be each of these; give the whole ID:\n  %s", name, strings.Join(found, "\n  "))
}
