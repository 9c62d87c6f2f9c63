// Package consul is the built-in plugin registry/consul: services, instances and their health from Consul, by blocking
// queries of its HTTP API.
//
// answer.go says what Consul answers, client_process.go and client_wasip1.go ask, watch.go judges answers, schedule.go
// says who is asked next, registry.go runs it all; mapping.go, port.go and label.go make an instance what the mesh
// knows, book.go makes rows of them, lost.go counts what could not be mapped.
//
// It builds for processes and, without Consul's client library, as a module (folder wasm).
package consul

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/consul.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/consul",
		Version:   "1",
		Publishes: instances.Tables(),
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return New(c)
		}),
	}
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "address": {"type": "string", "default": "http://127.0.0.1:8500", "description": "URL of an agent or a server: http://, https:// or unix:///PATH."},
    "token": {"type": "string", "description": "ACL token."},
    "tokenFile": {"type": "string", "description": "File with the ACL token; read anew for each question."},
    "datacenters": {"type": "array", "items": {"type": "string"}, "description": "Datacenters whose instances count, as one; the agent's own where there are none."},
    "namespace": {"type": "string", "description": "Consul Enterprise's namespace."},
    "partition": {"type": "string", "description": "Consul Enterprise's partition."},
    "tls": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "caFile": {"type": "string", "description": "PEM file with the roots that are trusted; the system's where there is none."},
        "certFile": {"type": "string", "description": "PEM file with the client's certificate."},
        "keyFile": {"type": "string", "description": "PEM file with its key."},
        "serverName": {"type": "string", "description": "The name that the server's certificate must have; the address's host where there is none."}
      }
    },
    "stale": {"type": "boolean", "default": true, "description": "Any server may answer, not only the leader. What would take things away is made sure of."},
    "services": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "include": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of services that count; all where there are none."},
        "exclude": {"type": "array", "items": {"type": "string"}, "default": ["consul"], "description": "Names or globs of services that don't."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags that an instance must have, all of them."},
        "nodeMeta": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Metadata that the instance's node must have."},
        "filter": {"type": "string", "description": "Consul's filter expression over instances, such as Service.Meta.env == prod."}
      }
    },
    "healthy": {"type": "array", "items": {"enum": ["passing", "warning", "critical"]}, "default": ["passing", "warning"], "description": "Statuses of instances that are sent requests."},
    "host": {"type": "string", "default": "{service}.service.consul", "description": "A service's host; {namespace} and {partition} may be in it, too."},
    "servicePort": {"type": "integer", "minimum": 0, "maximum": 65535, "description": "The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."},
    "protocol": {"type": "string", "default": "HTTP", "description": "Where neither metadata nor tags say; empty: found out by each proxy."},
    "meta": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of an instance's metadata.",
      "properties": {
        "protocol": {"type": "string", "default": "protocol"},
        "port": {"type": "string", "default": "port", "description": "The service's port in the mesh."},
        "external": {"type": "string", "default": "external", "description": "Anything but false: outside of the mesh."},
        "serviceAccount": {"type": "string", "default": "service-account", "description": "Its service account; it speaks mutual TLS then."}
      }
    },
    "locality": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of a node's metadata.",
      "properties": {
        "region": {"type": "string", "default": "region", "description": "The datacenter where the node has none."},
        "zone": {"type": "string", "default": "zone"},
        "subzone": {"type": "string", "default": "subzone"}
      }
    },
    "taggedAddress": {"type": "string", "description": "Which tagged address of instances and nodes is used, where there is one: lan, wan, lan_ipv4, …"},
    "meshNamespace": {"type": "string", "default": "default", "description": "The namespace that the services are in."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster that the endpoints are said to be in."},
    "watches": {"type": "integer", "minimum": 2, "maximum": 1000, "default": 90, "description": "Questions under way at once, at most."},
    "wait": {"type": "string", "default": "1m", "description": "How long Consul lets a question wait for news."},
    "refresh": {"type": "string", "default": "15s", "description": "How late news may be where there are more services than watches."},
    "interval": {"type": "string", "default": "250ms", "description": "The least time between two questions about the same."},
    "maxRetry": {"type": "string", "default": "15s", "description": "The longest wait after failures."},
    "maxBytes": {"type": "integer", "minimum": 1024, "default": 67108864, "description": "The largest answer that is taken."}
  }
}`
