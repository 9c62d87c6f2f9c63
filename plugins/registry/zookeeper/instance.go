package zookeeper

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// instance is a node below /services/APPLICATION: what Curator's service discovery writes, with
// Dubbo's, or another's, metadata as payload. Source: Apache Curator, "Service Discovery",
// ServiceInstance; Dubbo, "Application-level service discovery".
type instance struct {
	Name    string          `json:"name"`
	ID      string          `json:"id"`
	Address string          `json:"address"`
	Port    *int64          `json:"port"`
	SSLPort *int64          `json:"sslPort"`
	Payload json.RawMessage `json:"payload"`
	Enabled *bool           `json:"enabled"`
	Time    int64           `json:"registrationTimeUTC"`

	metadata  map[string]string
	endpoints []endpoint
}

// endpoint is one of dubbo.endpoints.
type endpoint struct {
	Port     int64  `json:"port"`
	Protocol string `json:"protocol"`
}

// Keys of an instance's metadata.
const (
	endpointsKey = "dubbo.endpoints"
	revisionKey  = "dubbo.metadata.revision"
	storageKey   = "dubbo.metadata.storage-type"
)

// readInstance reads a node's value.
func readInstance(value []byte) (*instance, error) {
	var i instance
	if err := decode(value, &i); err != nil {
		return nil, err
	}
	if i.Address == "" {
		return nil, strict.Errorf("address", "is missing")
	}
	var payload struct {
		Metadata map[string]string `json:"metadata"`
	}
	if len(i.Payload) > 0 && i.Payload[0] == '{' {
		if err := decode(i.Payload, &payload); err != nil {
			return nil, strict.Errorf("payload", "%v", err)
		}
	}
	if i.metadata = payload.Metadata; i.metadata == nil {
		i.metadata = map[string]string{}
	}
	if text := i.metadata[endpointsKey]; text != "" {
		if err := decode([]byte(text), &i.endpoints); err != nil {
			return nil, strict.Errorf("payload.metadata."+endpointsKey, "%v", err)
		}
	}
	if len(i.endpoints) == 0 {
		port, protocol := i.Port, ""
		if port == nil {
			port, protocol = i.SSLPort, "https"
		}
		if port == nil {
			return nil, strict.Errorf("port", "is missing")
		}
		i.endpoints = []endpoint{{*port, protocol}}
	}
	for _, e := range i.endpoints {
		if e.Port < 1 || e.Port > 65535 {
			return nil, strict.Errorf("port", "%d is not between 1 and 65535", e.Port)
		}
	}
	return &i, (&offer{parameters: i.metadata}).common()
}

func decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("is no such JSON: %s", clip(err.Error()))
	}
	return nil
}

// revision is that of what the instance serves; empty: it serves no interface.
func (i *instance) revision() string {
	if r := i.metadata[revisionKey]; r != "0" && r != "N/A" {
		return r
	}
	return ""
}

// served is what the instances of a revision serve.
// Source: Dubbo, "Metadata center", MetadataInfo.
type served struct {
	Services map[string]*struct {
		Name     string            `json:"name"`
		Group    string            `json:"group"`
		Version  string            `json:"version"`
		Protocol string            `json:"protocol"`
		Port     int64             `json:"port"`
		Params   map[string]string `json:"params"`
	} `json:"services"`
}

// readServed reads the value of /dubbo/metadata/APPLICATION/REVISION.
func readServed(value []byte) (*served, error) {
	var s served
	if err := decode(value, &s); err != nil {
		return nil, err
	}
	for key, one := range s.Services {
		if one == nil || one.Name == "" {
			return nil, strict.Errorf("services", "%q has no name", clip(key))
		}
		if one.Port < 0 || one.Port > 65535 {
			return nil, strict.Errorf("services", "the port of %q, %d, is not between 1 and 65535", clip(key), one.Port)
		}
		if err := (&offer{parameters: one.Params}).common(); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// offers are an instance's as a part of its application, and, where that is known, those of what it
// serves.
func (i *instance) offers(application string, s *served) (all []*offer) {
	of := fmt.Sprintf("%s of application %s", or(i.ID, i.Address), application)
	make := func(service igv, protocol string, port int64, parameters map[string]string) *offer {
		o := &offer{
			of: of, service: service, protocol: protocol, address: i.Address, port: uint32(port),
			parameters: parameters, owner: application, stamp: i.Time,
		}
		_ = o.common() // looked at before
		o.disabled = o.disabled || i.Enabled != nil && !*i.Enabled
		all = append(all, o)
		return o
	}
	for _, e := range i.endpoints {
		make(igv{name: application}, e.Protocol, e.Port, i.metadata).application = true
	}
	if s == nil {
		return all
	}
	for _, key := range slices.Sorted(maps.Keys(s.Services)) {
		one := s.Services[key]
		parameters := maps.Clone(one.Params)
		if parameters == nil {
			parameters = map[string]string{}
		}
		for k, v := range i.metadata { // what is said of the instance goes before what is said of all
			if !strings.HasPrefix(k, "dubbo.") || k == "dubbo.tag" {
				parameters[k] = v
			}
		}
		port, protocol := one.Port, strings.ToLower(one.Protocol)
		for _, e := range i.endpoints {
			if strings.EqualFold(e.Protocol, protocol) || protocol == "" {
				port, protocol = e.Port, strings.ToLower(e.Protocol)
				break
			}
		}
		if port > 0 {
			make(newIGV(one.Name, one.Group, one.Version), protocol, port, parameters)
		}
	}
	return all
}
