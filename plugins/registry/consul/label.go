package consul

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// tagLabel begins the label of a tag that is no KEY|VALUE.
const tagLabel = "tag/"

// labels are an instance's metadata; its tags of the form KEY|VALUE, as Istio's registry had them,
// or KEY=VALUE; and each other tag as tag/TAG: "true". Metadata goes before tags, and the first tag
// before the next. lost is called for each tag that is not among them.
func labels(e *entry, lost func(instances.Reason, string)) map[string]string {
	out := make(map[string]string, len(e.Service.Meta)+len(e.Service.Tags))
	for k, v := range e.Service.Meta {
		out[k] = v
	}
	for _, tag := range e.Service.Tags {
		key, value, ok := pair(tag)
		if !ok {
			key, value = tagLabel+tag, "true"
		}
		if !instances.IsLabel(key) {
			lost(lostTag, tag)
			continue
		}
		if was, there := out[key]; there && was != value {
			lost(lostTwice, tag)
			continue
		}
		out[key] = value
	}
	return out
}

// pair splits a tag at the first | or, where there is none, at the first =.
func pair(tag string) (key, value string, ok bool) {
	if key, value, ok = strings.Cut(tag, "|"); !ok {
		key, value, ok = strings.Cut(tag, "=")
	}
	return key, value, ok && instances.IsLabel(key)
}

// locality is region/zone/subzone: what a label says, or the instance's or its node's locality
// (Consul 1.17), or the node's metadata. The region is the datacenter where nothing else says it.
func (c *Config) locality(e *entry, labels map[string]string) string {
	if said := hosts.Locality("", labels); said != "" {
		return said
	}
	region, zone, subzone := e.Node.Meta[c.Locality.Region], e.Node.Meta[c.Locality.Zone], e.Node.Meta[c.Locality.Subzone]
	for _, p := range []*place{e.Node.Locality, e.Service.Locality} {
		if p != nil && p.Region != "" {
			region, zone, subzone = p.Region, p.Zone, ""
		}
	}
	if region == "" {
		region = e.Node.Datacenter
	}
	return strings.TrimRight(escape(region)+"/"+escape(zone)+"/"+escape(subzone), "/")
}

// escape keeps a part of a locality one.
func escape(part string) string { return strings.ReplaceAll(part, "/", "-") }
