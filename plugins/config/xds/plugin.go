// Package xds is the built-in plugin config/xds: Istio's resources of a server that speaks "MCP
// over xDS", as istiod and other control planes do: each kind is a type GROUP/VERSION/KIND of the
// aggregated discovery service, whose resources are istio.mcp.v1alpha1.Resource.
//
// address.go says how the server is reached and node.go who asks. source.go connects, again and
// again, and stream.go speaks on one connection. book.go is what the server has said of one type
// and which answers are refused, resource.go makes a row of a resource, and publication.go
// publishes what has changed.
package xds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Address of the server: HOST:PORT, xds://HOST:PORT or unix:///PATH.
	Address string `json:"address" required:"true" doc:"Of the server: HOST:PORT, xds://HOST:PORT or unix:///PATH."`
	// TLS secures the connection; nil: it is in plain text.
	TLS *secure.TLS `json:"tls" doc:"Secures the connection; without it there is none but plain text."`
	// TokenFile has a token that is sent with each stream.
	TokenFile string `json:"tokenFile" doc:"File of a token, sent as authorization: Bearer TOKEN and read anew for each stream. Needs tls, but for this machine's own addresses."`
	// Node is who asks.
	Node identity `json:"node" doc:"How this control plane names itself."`
	// Revision is that of this control plane; empty: all resources count, whatever their
	// istio.io/rev.
	Revision string `json:"revision" doc:"This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."`
	// Types are what is asked for, GROUP/VERSION/KIND; empty: each kind in its first version.
	Types []string `json:"types" doc:"What is asked for, GROUP/VERSION/KIND each, such as networking.istio.io/v1alpha3/ServiceEntry; if absent, each of Istio's kinds in its newest version. Those of the Gateway API, and Ingresses, are asked for where they are named."`
	// Synthetic: entries that stand for services without endpoints count, too.
	Synthetic bool `json:"synthetic" doc:"Take the ServiceEntries without endpoints, named synthetic-, by which control planes list services of their registries."`
	// WaitFor says what the first list waits for: all, server or nothing; Wait is how long, where
	// that isn't all.
	WaitFor string        `json:"waitFor" enum:"all,server,nothing" doc:"What holds the start: all: each type must have been answered; server: the server must have answered anything, and what is late after wait is not waited for; nothing: after wait the start goes on without the server."`
	Wait    time.Duration `json:"wait" min:"1ms" doc:"How long answers may take until they are missed: that is shown, and see waitFor."`
	// KeepAlive is the silence after which the server is asked for a sign of life, MaxRetry the
	// longest pause between two tries.
	KeepAlive time.Duration `json:"keepAlive" min:"10s" doc:"A server that is silent for this time is asked for a sign of life, and given up 10s later; 10s at least."`
	MaxRetry  time.Duration `json:"maxRetry" min:"1s" doc:"The longest pause between two tries to reach the server."`
	Limits    limits        `json:"limits"`
	kinds.Ordering

	asked []asked
}

// identity is how the client names itself.
type identity struct {
	// Type is of the proxy that it seems to be: waypoint, router or sidecar.
	Type      string `json:"type" enum:"waypoint,router,sidecar" doc:"Of the proxy that it seems to be to the server. An istiod tells waypoints of all changes, routers of most, sidecars of those in their scope."`
	Name      string `json:"name" doc:"The machine's name if absent."`
	Namespace string `json:"namespace"`
}

// limits bound what is taken from the server.
type limits struct {
	Resources    int `json:"resources" min:"1" doc:"Of more resources of a type, those with the first names in order count."`
	MessageBytes int `json:"messageBytes" min:"1024" max:"2147483647" doc:"A larger answer ends the connection."`
	Answers      int `json:"answers" min:"1" doc:"Answers that are read in a second; more wait in the server."`
}

// asked is a type that is asked for.
type asked struct {
	url, version string
	kind         kinds.Kind
	// plain: the kind is none of Istio's, and its bodies are google.protobuf.Struct. cluster: its
	// objects are in no namespace.
	plain, cluster bool
}

// What the first list waits for.
const (
	waitForAll     = "all"
	waitForServer  = "server"
	waitForNothing = "nothing"
)

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		WaitFor: waitForAll, Wait: 10 * time.Second, KeepAlive: 30 * time.Second, MaxRetry: 30 * time.Second,
		Node: identity{Type: "waypoint", Namespace: "istio-system"}, Limits: limits{Resources: 100_000, MessageBytes: 128 << 20, Answers: 100}}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if err := c.checkAddress(); err != nil {
		return err
	}
	if err := c.Ordering.Check(); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(c.Node.Name+c.Node.Namespace, "~/ ") || c.Node.Namespace == "":
		return strict.Errorf("node", "name and namespace are names, such as istiod-0 and istio-system")
	case c.Limits.Resources < 1:
		return strict.Errorf("limits.resources", "at least 1")
	case c.Limits.MessageBytes < 1<<10 || c.Limits.MessageBytes > 1<<31-1:
		return strict.Errorf("limits.messageBytes", "from 1024 to 2147483647")
	case c.Limits.Answers < 1:
		return strict.Errorf("limits.answers", "at least 1")
	}
	return c.chooseTypes()
}

// chooseTypes reads the types that are asked for.
func (c *Config) chooseTypes() error {
	if len(c.Types) == 0 {
		for _, k := range kinds.All() {
			c.asked = append(c.asked, ask(asked{kind: k}, k.Versions[0]))
		}
		return nil
	}
	known := append(kinds.Tables(), others()...)
	for i, url := range c.Types {
		parts := strings.Split(url, "/")
		if len(parts) != 3 {
			return strict.Errorf(strict.At("types", i), "%q is no GROUP/VERSION/KIND, such as networking.istio.io/v1/VirtualService", url)
		}
		table := parts[0] + "/" + parts[2]
		of, ok := lookup(table)
		switch k := of.kind; {
		case !ok:
			return strict.Errorf(strict.At("types", i), "%s is no kind that is read%s", table, nearest.Suggest(table, known))
		case !slices.Contains(k.Versions, parts[1]):
			return strict.Errorf(strict.At("types", i), "%s has no version %q; it has %s", k.Name(), parts[1], strings.Join(k.Versions, ", "))
		case slices.ContainsFunc(c.asked, func(a asked) bool { return a.kind.Table == k.Table }):
			return strict.Errorf(strict.At("types", i), "%s is asked for already: its versions have the same objects", k.Name())
		}
		c.asked = append(c.asked, ask(of, parts[1]))
	}
	return nil
}

// others are the tables of kinds that are none of Istio's: those of the Gateway API, and Ingresses.
func others() []string { return append(kinds.OtherTables(), secrets.Grants) }

// lookup returns the kind of a table, without a version.
func lookup(table string) (asked, bool) {
	if k, ok := kinds.Lookup(table); ok {
		return asked{kind: k}, true
	}
	if k, ok := kinds.Other(table); ok {
		return asked{kind: kinds.Kind{Table: k.Table, Versions: k.Versions}, plain: true, cluster: k.Cluster}, true
	}
	return asked{kind: kinds.Grants(), plain: true}, table == secrets.Grants
}

// ask has a kind asked for in a version.
func ask(a asked, version string) asked {
	a.url, a.version = fmt.Sprintf("%s/%s/%s", a.kind.Group(), version, a.kind.Name()), version
	return a
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/xds",
		Version:   "1",
		Publishes: slices.Concat(kinds.Tables(), others(), []string{kinds.FaultTable}),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) {
			return &source{config: c}, nil
		}),
	}
}
