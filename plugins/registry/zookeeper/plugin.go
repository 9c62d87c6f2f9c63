// Package zookeeper is the built-in plugin registry/zookeeper: Dubbo's providers in ZooKeeper, by interface (Dubbo 2)
// and by application (Dubbo 3), and what else registers by Curator's service discovery.
//
// session.go keeps up a session with ZooKeeper and reads nodes in it; follow.go says what is read and when; registry.go
// runs it all. provider.go, instance.go and override.go read what stands in nodes, host.go names services, mapping.go
// and port.go make what the mesh knows of it, book.go makes rows of that, lost.go counts what could not be mapped.
package zookeeper

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns registry/zookeeper.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/zookeeper",
		Version:   "1",
		Publishes: []string{state.Services, state.Endpoints, state.Faults},
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return registry{c}, nil
		}),
	}
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "servers": {"type": "array", "minItems": 1, "items": {"type": "string"}, "default": ["127.0.0.1:2181"], "description": "Servers of one ensemble, as HOST:PORT."},
    "username": {"type": "string", "description": "User of the authentication scheme digest."},
    "password": {"type": "string", "description": "The user's password."},
    "tls": {
      "type": "object",
      "additionalProperties": false,
      "description": "For servers' secureClientPort.",
      "properties": {
        "enabled": {"type": "boolean", "default": false},
        "caFile": {"type": "string", "description": "PEM file with the roots that are trusted; the system's where there is none."},
        "certFile": {"type": "string", "description": "PEM file with the client's certificate."},
        "keyFile": {"type": "string", "description": "PEM file with its key."},
        "serverName": {"type": "string", "description": "The name that servers' certificates must have; the address's host where there is none."}
      }
    },
    "roots": {
      "type": "object",
      "additionalProperties": false,
      "description": "Where things stand, as absolute paths, a chroot included; empty: they are not read.",
      "properties": {
        "interfaces": {"type": "string", "default": "/dubbo", "description": "Providers by interface: the registry's group."},
        "applications": {"type": "string", "default": "/services", "description": "Instances by application."},
        "metadata": {"type": "string", "default": "/dubbo/metadata", "description": "What applications' instances serve."},
        "rules": {"type": "string", "default": "/dubbo/config/dubbo", "description": "Rules of the configuration center."}
      }
    },
    "interfaces": {
      "type": "object",
      "additionalProperties": false,
      "description": "Interfaces that count.",
      "properties": {
        "include": {"type": "array", "items": {"type": "string"}, "description": "Names or globs that count; all where there are none."},
        "exclude": {"type": "array", "items": {"type": "string"}, "default": ["org.apache.dubbo.metadata.*"], "description": "Names or globs that don't."}
      }
    },
    "applications": {
      "type": "object",
      "additionalProperties": false,
      "description": "Applications that are read.",
      "properties": {
        "include": {"type": "array", "items": {"type": "string"}, "description": "Names or globs that count; all where there are none."},
        "exclude": {"type": "array", "items": {"type": "string"}, "description": "Names or globs that don't."}
      }
    },
    "host": {"type": "string", "default": "{service}.dubbo", "description": "The host of an interface; {service} stands for {version}.{group}.{interface}."},
    "applicationHost": {"type": "string", "default": "{application}.dubbo-application", "description": "The host of an application; empty: applications are no services of their own."},
    "servicePorts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 65535}, "description": "Ports of services in the mesh by Dubbo's protocol, such as tri, whatever ports their providers have."},
    "protocols": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Protocols of the mesh by Dubbo's, beside those that are known."},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"tag": "dubbo.tag"}, "description": "Further labels, and the parameters whose values they have."},
    "meta": {
      "type": "object",
      "additionalProperties": false,
      "description": "Names of parameters.",
      "properties": {
        "region": {"type": "string", "default": "region"},
        "zone": {"type": "string", "default": "zone"},
        "subzone": {"type": "string", "default": "subzone"},
        "serviceAccount": {"type": "string", "default": "service-account", "description": "Its service account; it speaks mutual TLS then."}
      }
    },
    "meshNamespace": {"type": "string", "default": "default", "description": "The namespace that the services are in."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster that the endpoints are said to be in."},
    "session": {"type": "string", "default": "10s", "description": "Session timeout that is asked for; a server that is silent for two thirds of it is given up."},
    "settle": {"type": "string", "default": "30s", "description": "How long after the beginning of a session a list that has become empty is not believed."},
    "maxRetry": {"type": "string", "default": "15s", "description": "The longest wait after failures."},
    "refresh": {"type": "string", "default": "5m", "description": "How often all is read once more: ZooKeeper loses a watch on what may not be read when it changes."},
    "limits": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "services": {"type": "integer", "minimum": 1, "default": 10000, "description": "Interfaces, and applications; of more the first in order count."},
        "instances": {"type": "integer", "minimum": 1, "default": 100000, "description": "Nodes of providers and instances; those that come when there are as many are left out."},
        "nodeBytes": {"type": "integer", "minimum": 64, "maximum": 900000, "default": 65536, "description": "A larger name or value of a provider or an instance is refused."},
        "answerBytes": {"type": "integer", "minimum": 65536, "default": 67108864, "description": "The largest answer that is taken."},
        "reads": {"type": "integer", "minimum": 1, "maximum": 256, "default": 32, "description": "Nodes that are read at once."}
      }
    }
  }
}`
