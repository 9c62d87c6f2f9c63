package zookeeper

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// override is a rule below /dubbo/INTERFACE/configurators that changes providers' parameters.
// Source: Dubbo 2, "Configuration rule".
type override struct {
	name    string
	address string // empty: all
	port    uint32 // 0: all
	// absent: what a provider says itself goes before.
	absent bool
	// when says of which providers, by parameter; others is how much of it proxies don't know.
	application, group, version string
	weight, disabled            string
	others                      []string
}

// readOverride reads the name of a node; nil: it changes nothing.
func readOverride(name string) (*override, error) {
	text, err := unescape(name)
	if err != nil {
		return nil, err
	}
	at, p, err := readURL(text)
	if err != nil {
		return nil, err
	}
	o := &override{name: name, address: at.host, port: at.port, absent: at.protocol == "absent", weight: p["weight"], disabled: p["disabled"]}
	if at.protocol != "override" && at.protocol != "absent" {
		return nil, strict.Errorf("", "%q is neither override nor absent", clip(at.protocol))
	}
	if p["enabled"] == "false" || p["side"] == "consumer" {
		return nil, nil
	}
	if o.address == "0.0.0.0" {
		o.address = ""
	}
	if o.disabled == "" && p["disbaled"] != "" { // as consoles of old wrote it
		o.disabled = p["disbaled"]
	}
	if _, err := readWeight(o.weight); err != nil {
		return nil, strict.Errorf("weight", "%v", err)
	}
	if _, err := yes(o.disabled); err != nil {
		return nil, strict.Errorf("disabled", "%v", err)
	}
	o.application, o.group, o.version = p["application"], p["group"], p["version"]
	for k := range p {
		switch k {
		case "weight", "disabled", "disbaled", "application", "group", "version", "category", "dynamic", "enabled",
			"side", "name", "runtime", "force", "priority", "compatible_config":
		default:
			o.others = append(o.others, k)
		}
	}
	slices.Sort(o.others)
	return o, nil
}

// concerns reports whether it is about an offer.
func (r *override) concerns(o *offer) bool {
	fits := func(said, is string) bool { return said == "" || said == "*" || said == is }
	return (r.address == "" || r.address == o.address) && (r.port == 0 || r.port == o.port) && fits(r.application, o.owner) &&
		fits(r.group, o.service.group) && (fits(r.version, o.service.version) || r.version == "0.0.0" && o.service.version == "")
}

// overridden returns an offer's weight, and whether it is disabled, as overrides have it: those of
// one address go before those of all.
func overridden(o *offer, rules []*override) (weight uint32, disabled bool) {
	weight, _ = readWeight(o.parameters["weight"]) // looked at before
	disabled = o.disabled
	rules = slices.Clone(rules)
	slices.SortFunc(rules, func(a, b *override) int {
		return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(a.port, b.port), strings.Compare(a.name, b.name))
	})
	for _, r := range rules { // of all, whose address is empty, come first; the last one counts
		if !r.concerns(o) {
			continue
		}
		if r.weight != "" && !(r.absent && o.parameters["weight"] != "") {
			weight, _ = readWeight(r.weight)
		}
		if r.disabled != "" && !(r.absent && o.parameters["disabled"] != "") {
			disabled, _ = yes(r.disabled)
		}
	}
	return weight, disabled
}
