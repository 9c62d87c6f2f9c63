// Package eureka is the built-in plugin registry/eureka: applications, their instances and statuses from Eureka, by its REST protocol.
//
// answer.go reads what Eureka answers, client_process.go and client_wasip1.go ask, view.go says what the answers together mean, registry.go runs
// it all; mapping.go makes an instance what the mesh knows, lost.go says why some of it can't be.
//
// It builds for processes and as a module (folder wasm).
package eureka

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/eureka.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/eureka",
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
    "servers": {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": ["http://127.0.0.1:8761/eureka"], "description": "URLs of Eureka's servers, up to and without /apps. One is asked; where it fails, the next."},
    "remoteRegions": {"type": "array", "items": {"type": "string"}, "description": "Other regions, as the servers call them, whose instances count, too."},
    "username": {"type": "string", "description": "Who asks."},
    "password": {"type": "string"},
    "passwordFile": {"type": "string", "description": "File with the password; read anew for each question."},
    "tls": {
      "type": "object",
      "additionalProperties": false,
      "properties": ` + secure.Properties + `
    },
    "by": {"enum": ["vip", "application"], "default": "vip", "description": "What is a service of the mesh: each VIP address, or each application."},
    "applications": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "include": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of applications that count; all where there are none."},
        "exclude": {"type": "array", "items": {"type": "string"}, "description": "Names or globs of applications that don't."}
      }
    },
    "healthy": {"type": "array", "items": {"enum": ["UP", "DOWN", "STARTING", "OUT_OF_SERVICE", "UNKNOWN"]}, "default": ["UP"], "description": "Statuses of instances that are sent requests."},
    "host": {"type": "string", "default": "{service}.eureka", "description": "A service's host."},
    "address": {"enum": ["ip", "hostname"], "default": "ip", "description": "Where an instance is: at its ipAddr or at its hostName."},
    "servicePort": {"type": "integer", "minimum": 0, "maximum": 65535, "description": "The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."},
    "secureServicePort": {"type": "integer", "minimum": 0, "maximum": 65535, "description": "The same of secure ports."},
    "protocol": {"type": "string", "default": "HTTP", "description": "Of ports that are not secure, where metadata doesn't say; empty: found out by each proxy."},
    "meta": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of an instance's metadata.",
      "properties": {
        "weight": {"type": "string", "default": "weight"},
        "protocol": {"type": "string", "default": "protocol"},
        "external": {"type": "string", "default": "external", "description": "Anything but false: outside of the mesh."},
        "serviceAccount": {"type": "string", "default": "service-account", "description": "Its service account; it speaks mutual TLS then."}
      }
    },
    "locality": {
      "type": "object",
      "additionalProperties": false,
      "description": "Keys of an instance's metadata.",
      "properties": {
        "region": {"type": "string", "default": "region"},
        "zone": {"type": "string", "default": "zone"},
        "subzone": {"type": "string", "default": "subzone"}
      }
    },
    "region": {"type": "string", "description": "The region of instances that have a zone and don't say which region it is in."},
    "meshNamespace": {"type": "string", "default": "default", "description": "The namespace that the services are in."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster that the endpoints are said to be in."},
    "allowEmpty": {"type": "boolean", "default": false, "description": "A server that has no instance at all is believed."},
    "interval": {"type": "string", "default": "5s", "description": "How often it is asked what changed."},
    "full": {"type": "string", "default": "30s", "description": "How often it is asked for everything, whatever changes say."},
    "deltaWindow": {"type": "string", "default": "2m", "description": "After how long without an answer everything is asked for: less than what the server keeps changes for (3m)."},
    "keep": {"type": "string", "default": "5m", "description": "For how long what a server has forgotten stays, at most; the instance's lease is what counts below that."},
    "timeout": {"type": "string", "default": "20s", "description": "How long an answer may take."},
    "maxRetry": {"type": "string", "default": "15s", "description": "The longest wait after failures."},
    "maxBytes": {"type": "integer", "minimum": 1024, "default": 134217728, "description": "The largest answer that is taken."}
  }
}`
