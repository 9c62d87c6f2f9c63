package consul

import (
	"encoding/json"
	"strconv"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// faults is the table of what is wrong with what was read.
const faults = "faults"

// reason says why something of Consul's is not in the mesh.
type reason string

const (
	lostKind     reason = "kind"      // a proxy or gateway of Consul's own mesh
	lostAddress  reason = "address"   // neither an IP address nor a DNS name; the instance's last good one stays
	lostName     reason = "name"      // a DNS name where other instances have IP addresses
	lostPort     reason = "port"      // not between 1 and 65535; 0: it has none. The instance's last good one stays
	lostSocket   reason = "socket"    // a Unix socket: it is on its own machine alone
	lostPortMeta reason = "port-meta" // metadata that is no port; the instance's own counts
	lostPorts    reason = "ports"     // more than 64 ports
	lostProtocol reason = "protocol"  // instances differ in what they speak at a port
	lostSame     reason = "same"      // another instance is at the same address
	lostHost     reason = "host"      // a name that makes no DNS name
	lostTag      reason = "tag"       // a tag that can be no label
	lostTwice    reason = "twice"     // a tag that says otherwise than metadata or an earlier tag
	lostAnswer   reason = "answer"    // an answer that can't be used; the last good one stays
	lostHidden   reason = "hidden"    // the token may not see any more what it saw; it stays
)

// explanations are for people.
var explanations = map[reason]string{
	lostKind:     "belong to Consul's own mesh (proxies, gateways) and are left out",
	lostAddress:  "have an address that is neither an IP address nor a DNS name; what they were before stays, new ones are left out",
	lostName:     "have a DNS name where others have IP addresses and are left out",
	lostPort:     "have no port, or none between 1 and 65535; what they were before stays, new ones are left out",
	lostSocket:   "listen on a Unix socket of their machine and are left out",
	lostPortMeta: "have metadata for the service's port that is no port; their own port counts",
	lostPorts:    "are ports beyond the 64 that a service may have and are left out; if instances have ports of their own each, set servicePort",
	lostProtocol: "are ports at which instances differ in what they speak; most of them are right",
	lostSame:     "are where another instance is and are left out",
	lostHost:     "make no DNS name and are left out",
	lostTag:      "are tags that can be no label",
	lostTwice:    "are tags that say otherwise than metadata or an earlier tag, which count",
	lostAnswer:   "can't be read; what was read last stays",
	lostHidden:   "are hidden by Consul's ACLs since the token's rights became less; what was read last stays until the plugin is restarted",
}

// tally counts what was lost of one service, with an example of each reason.
type tally map[reason]example

type example struct {
	count int
	of    string
}

func (t tally) add(r reason, of string) {
	e := t[r]
	if e.count++; e.count == 1 {
		e.of = of
	}
	t[r] = e
}

// faultsMost is of how many services the table shows something. The log counts all.
const faultsMost = 1000

// shown is what the table faults has of this plugin, by service and key.
type shown map[string]map[string]string

// update returns what changes so that the table shows a service's tally.
func (s shown) update(name string, t tally) (upserts []*sdk.Row, deletes []string) {
	now := map[string]string{}
	if len(s) < faultsMost || s[name] != nil {
		for r, e := range t {
			now["consul:"+name+":"+string(r)] = fault(name, r, e)
		}
	}
	for key, payload := range now {
		if s[name][key] != payload {
			upserts = append(upserts, &sdk.Row{Key: key, Source: "consul", Payload: []byte(payload)})
		}
	}
	for key := range s[name] {
		if _, ok := now[key]; !ok {
			deletes = append(deletes, key)
		}
	}
	if s[name] = now; len(now) == 0 {
		delete(s, name)
	}
	return upserts, deletes
}

// fault is a row of the table.
func fault(name string, r reason, e example) string {
	left, kept := 0, 0
	switch r {
	case lostTag, lostTwice, lostPortMeta, lostProtocol: // the rest of it counts
	case lostAnswer, lostHidden:
		kept = e.count
	default:
		left = e.count
	}
	row, _ := json.Marshal(struct { // strings and numbers always have a JSON form
		File     string `json:"file"`
		Line     int    `json:"line"`
		Column   int    `json:"column"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
		Severity string `json:"severity"`
		Field    string `json:"field"`
		Message  string `json:"message"`
		Reason   string `json:"reason"`
		Left     int    `json:"left,omitempty"`
		Kept     int    `json:"kept,omitempty"`
	}{"consul", 0, 0, "Service", name, "warning", string(r), strconv.Itoa(e.count) + " (" + clip(e.of) + ") " + explanations[r], string(r), left, kept})
	return string(row)
}

// totals sums tallies up, for the log.
func totals(tallies map[string]tally) map[reason]int {
	sum := map[reason]int{}
	for _, t := range tallies {
		for r, e := range t {
			sum[r] += e.count
		}
	}
	return sum
}
