// Package nacos is the built-in plugin registry/nacos: services and their instances from Nacos, by
// the gRPC protocol that Nacos' own clients speak since version 2.
//
// payload.go, answer.go and connection.go are that protocol, login.go asks for tokens; link.go
// follows one namespace on one connection, view.go says what the answers together mean, registry.go
// runs it all; mapping.go makes an instance what the mesh knows, lost.go says why some of it can't
// be.
package nacos

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/nacos.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/nacos",
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
    "servers": {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": ["127.0.0.1:8848"], "description": "HOST:PORT, or https://HOST:PORT, of Nacos' servers: their HTTP port. One is asked; where it fails, the next."},
    "grpcOffset": {"type": "integer", "default": 1000, "description": "How far a server's gRPC port is from its HTTP port."},
    "contextPath": {"type": "string", "default": "/nacos", "description": "Where the servers' HTTP API begins."},
    "username": {"type": "string", "description": "Who asks."},
    "password": {"type": "string"},
    "passwordFile": {"type": "string", "description": "File with the password; read anew for each login."},
    "tls": {
      "type": "object",
      "additionalProperties": false,
      "description": "Of gRPC, and of logins at https://. An empty object: TLS by the system's roots.",
      "properties": ` + secure.Properties + `
    },
    "namespaces": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20, "default": ["public"], "description": "IDs of namespaces."},
    "groups": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20, "default": ["DEFAULT_GROUP"], "description": "Groups in each of them."},
    "services": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "include": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of services that count; all where there are none."},
        "exclude": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of services that don't."}
      }
    },
    "clusters": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of clusters whose instances count; all where there are none."},
    "host": {"type": "string", "default": "{service}.{group}.{namespace}.nacos", "description": "A service's host."},
    "servicePort": {"type": "integer", "minimum": 0, "maximum": 65535, "description": "The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."},
    "protocol": {"type": "string", "default": "HTTP", "description": "What instances speak, where metadata doesn't say; empty: found out by each proxy."},
    "meta": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of an instance's metadata.",
      "properties": {
        "protocol": {"type": "string", "default": "protocol"},
        "secure": {"type": "string", "default": "secure", "description": "true: it speaks HTTPS."},
        "external": {"type": "string", "default": "external", "description": "Anything but false: outside of the mesh."},
        "serviceAccount": {"type": "string", "default": "service-account", "description": "Its service account; it speaks mutual TLS then."}
      }
    },
    "ports": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"gRPC_port": "GRPC", "gRPC.port": "GRPC"}, "description": "Keys of an instance's metadata that have the number of a further port, and what is spoken there."},
    "locality": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of an instance's metadata.",
      "properties": {
        "region": {"type": "string", "default": "region"},
        "zone": {"type": "string", "default": "zone"},
        "subzone": {"type": "string", "default": "subzone"},
        "cluster": {"enum": ["", "region", "zone"], "default": "", "description": "What the name of an instance's cluster is, where metadata doesn't say it and it isn't DEFAULT."}
      }
    },
    "region": {"type": "string", "description": "The region of instances that have a zone and don't say which region it is in."},
    "meshNamespace": {"type": "string", "default": "default", "description": "The namespace that the services are in."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster that the endpoints are said to be in."},
    "limits": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "services": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 10000, "description": "Services that are followed, in each namespace."},
        "instances": {"type": "integer", "minimum": 1, "maximum": 10000000, "default": 100000, "description": "Instances of all services."},
        "messageBytes": {"type": "integer", "minimum": 1024, "maximum": 1073741824, "default": 67108864, "description": "The largest message that is taken."},
        "requests": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 16, "description": "Questions at once, of each namespace."}
      }
    },
    "interval": {"type": "string", "default": "5s", "description": "How often the services are listed."},
    "refresh": {"type": "string", "default": "1m", "description": "How often each service is asked for, whatever the server tells by itself."},
    "keep": {"type": "string", "default": "30s", "description": "For how long stays what a server has forgotten, and for how long a server that has nothing is not believed at the start."},
    "timeout": {"type": "string", "default": "5s", "description": "How long an answer may take."},
    "maxRetry": {"type": "string", "default": "15s", "description": "The longest wait after failures."}
  }
}`
