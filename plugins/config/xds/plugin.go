// Package xds is the built-in plugin config/xds: Istio's resources of a server that speaks "MCP over xDS", as istiod
// and other control planes do: each kind is a type GROUP/VERSION/KIND of the aggregated discovery service, whose
// resources are istio.mcp.v1alpha1.Resource.
//
// address.go says how the server is reached and node.go who asks. source.go connects, again and again, and stream.go
// speaks on one connection. book.go is what the server has said of one type and which answers are refused, resource.go
// makes a row of a resource, and publication.go publishes what has changed.
package xds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Address of the server: HOST:PORT, xds://HOST:PORT or unix:///PATH.
	Address string `json:"address"`
	// TLS secures the connection; nil: it is in plain text.
	TLS *secure.TLS `json:"tls"`
	// TokenFile has a token that is sent with each stream.
	TokenFile string `json:"tokenFile"`
	// Node is who asks.
	Node identity `json:"node"`
	// Revision is that of this control plane; empty: all resources count, whatever their istio.io/rev.
	Revision string `json:"revision"`
	// Types are what is asked for, GROUP/VERSION/KIND; empty: each kind in its first version.
	Types []string `json:"types"`
	// Synthetic: entries that stand for services without endpoints count, too.
	Synthetic bool `json:"synthetic"`
	// WaitFor says what the first list waits for: all, server or nothing; Wait is how long, where that isn't all.
	WaitFor string `json:"waitFor"`
	Wait    string `json:"wait"`
	// KeepAlive is the silence after which the server is asked for a sign of life, MaxRetry the longest pause between
	// two tries.
	KeepAlive string `json:"keepAlive"`
	MaxRetry  string `json:"maxRetry"`
	Limits    limits `json:"limits"`

	wait, keepAlive, maxRetry time.Duration
	asked                     []asked
}

// identity is how the client names itself.
type identity struct {
	// Type is of the proxy that it seems to be: waypoint, router or sidecar.
	Type      string `json:"type"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// limits bound what is taken from the server.
type limits struct {
	Resources    int `json:"resources"`
	MessageBytes int `json:"messageBytes"`
	Answers      int `json:"answers"`
}

// asked is a type that is asked for.
type asked struct {
	url, version string
	kind         kinds.Kind
}

// What the first list waits for.
const (
	waitForAll     = "all"
	waitForServer  = "server"
	waitForNothing = "nothing"
)

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["address"],
  "properties": {
    "address": {"type": "string", "description": "Of the server: HOST:PORT, xds://HOST:PORT or unix:///PATH."},
    "tls": {"type": "object", "additionalProperties": false, "description": "Secures the connection; without it there is none but plain text.", "properties": ` + secure.Properties + `},
    "tokenFile": {"type": "string", "description": "File of a token, sent as authorization: Bearer TOKEN and read anew for each stream. Needs tls, but for this machine's own addresses."},
    "node": {"type": "object", "additionalProperties": false, "description": "How this control plane names itself.", "properties": {
      "type": {"enum": ["waypoint", "router", "sidecar"], "default": "waypoint", "description": "Of the proxy that it seems to be to the server. An istiod tells waypoints of all changes, routers of most, sidecars of those in their scope."},
      "name": {"type": "string", "description": "The machine's name if absent."},
      "namespace": {"type": "string", "default": "istio-system"}
    }},
    "revision": {"type": "string", "description": "This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."},
    "types": {"type": "array", "items": {"type": "string"}, "description": "What is asked for, GROUP/VERSION/KIND each, such as networking.istio.io/v1alpha3/ServiceEntry; if absent, each of Istio's kinds in its newest version."},
    "synthetic": {"type": "boolean", "default": false, "description": "Take the ServiceEntries without endpoints, named synthetic-, by which control planes list services of their registries."},
    "waitFor": {"enum": ["all", "server", "nothing"], "default": "all", "description": "What holds the start: all: each type must have been answered; server: the server must have answered anything, and what is late after wait is not waited for; nothing: after wait the start goes on without the server."},
    "wait": {"type": "string", "default": "10s", "description": "How long answers may take until they are missed: that is shown, and see waitFor."},
    "keepAlive": {"type": "string", "default": "30s", "description": "A server that is silent for this time is asked for a sign of life, and given up 10s later; 10s at least."},
    "maxRetry": {"type": "string", "default": "30s", "description": "The longest pause between two tries to reach the server."},
    "limits": {"type": "object", "additionalProperties": false, "properties": {
      "resources": {"type": "integer", "minimum": 1, "default": 100000, "description": "Of more resources of a type, those with the first names in order count."},
      "messageBytes": {"type": "integer", "minimum": 1024, "maximum": 2147483647, "default": 134217728, "description": "A larger answer ends the connection."},
      "answers": {"type": "integer", "minimum": 1, "default": 100, "description": "Answers that are read in a second; more wait in the server."}
    }}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{WaitFor: waitForAll, Node: identity{Type: "waypoint", Namespace: "istio-system"}, Limits: limits{Resources: 100_000, MessageBytes: 128 << 20, Answers: 100}}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	if err := c.checkAddress(); err != nil {
		return c, err
	}
	for _, d := range []struct {
		field, text string
		into        *time.Duration
		otherwise   time.Duration
	}{
		{"wait", c.Wait, &c.wait, 10 * time.Second}, {"keepAlive", c.KeepAlive, &c.keepAlive, 30 * time.Second}, {"maxRetry", c.MaxRetry, &c.maxRetry, 30 * time.Second},
	} {
		var err error
		if *d.into, err = strict.Duration(d.field, d.text, d.otherwise); err != nil {
			return c, err
		}
	}
	switch {
	case !slices.Contains([]string{waitForAll, waitForServer, waitForNothing}, c.WaitFor):
		return c, strict.Errorf("waitFor", "%q is none of all, server and nothing", c.WaitFor)
	case !slices.Contains([]string{"waypoint", "router", "sidecar"}, c.Node.Type):
		return c, strict.Errorf("node.type", "%q is none of waypoint, router and sidecar", c.Node.Type)
	case strings.ContainsAny(c.Node.Name+c.Node.Namespace, "~/ ") || c.Node.Namespace == "":
		return c, strict.Errorf("node", "name and namespace are names, such as istiod-0 and istio-system")
	case c.wait == 0:
		return c, strict.Errorf("wait", "must be more than 0s: each start takes some time until there is an answer")
	case c.keepAlive < 10*time.Second:
		return c, strict.Errorf("keepAlive", "at least 10s: servers close connections that ask oftener")
	case c.maxRetry < time.Second:
		return c, strict.Errorf("maxRetry", "at least 1s")
	case c.Limits.Resources < 1:
		return c, strict.Errorf("limits.resources", "at least 1")
	case c.Limits.MessageBytes < 1<<10 || c.Limits.MessageBytes > 1<<31-1:
		return c, strict.Errorf("limits.messageBytes", "from 1024 to 2147483647")
	case c.Limits.Answers < 1:
		return c, strict.Errorf("limits.answers", "at least 1")
	}
	return c, c.chooseTypes()
}

// chooseTypes reads the types that are asked for.
func (c *Config) chooseTypes() error {
	if len(c.Types) == 0 {
		for _, k := range kinds.All() {
			c.asked = append(c.asked, ask(k, k.Versions[0]))
		}
		return nil
	}
	for i, url := range c.Types {
		parts := strings.Split(url, "/")
		if len(parts) != 3 {
			return strict.Errorf(strict.At("types", i), "%q is no GROUP/VERSION/KIND, such as networking.istio.io/v1/VirtualService", url)
		}
		k, ok := kinds.Lookup(parts[0] + "/" + parts[2])
		switch {
		case !ok:
			return strict.Errorf(strict.At("types", i), "%s/%s is none of Istio's kinds%s", parts[0], parts[2], nearest.Suggest(parts[0]+"/"+parts[2], kinds.Tables()))
		case !slices.Contains(k.Versions, parts[1]):
			return strict.Errorf(strict.At("types", i), "%s has no version %q; it has %s", k.Name(), parts[1], strings.Join(k.Versions, ", "))
		case slices.ContainsFunc(c.asked, func(a asked) bool { return a.kind.Table == k.Table }):
			return strict.Errorf(strict.At("types", i), "%s is asked for already: its versions have the same objects", k.Name())
		}
		c.asked = append(c.asked, ask(k, parts[1]))
	}
	return nil
}

func ask(k kinds.Kind, version string) asked {
	return asked{fmt.Sprintf("%s/%s/%s", k.Group(), version, k.Name()), version, k}
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/xds",
		Version:   "1",
		Publishes: append(kinds.Tables(), kinds.FaultTable),
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return &source{config: c}, nil
		}),
	}
}
