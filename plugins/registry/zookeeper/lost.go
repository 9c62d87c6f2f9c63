package zookeeper

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// reason says why something of a service is not in the mesh.
type reason string

const (
	lostAddress  reason = "address"
	lostPort     reason = "port"
	lostName     reason = "name"
	lostPorts    reason = "ports"
	lostSpeaks   reason = "protocol"
	lostDiffers  reason = "protocols"
	lostSame     reason = "same"
	lostCase     reason = "case"
	lostHost     reason = "host"
	lostLabels   reason = "labels"
	lostToken    reason = "token"
	lostPolicy   reason = "policy"
	lostTLS      reason = "tls"
	lostExtra    reason = "ext-protocol"
	lostOverride reason = "override"
	lostRule     reason = "rule"
	lostMetadata reason = "metadata"
	lostHidden   reason = "hidden"
	lostLimit    reason = "limit"
	lostGone     reason = "gone"
	lostRoot     reason = "root"
)

// explanations are for people.
var explanations = map[reason]string{
	lostAddress:  "have an address that is neither an IP address nor a DNS name, or that of all of a machine's, and are left out",
	lostPort:     "have no port and are left out",
	lostName:     "have a DNS name where others have IP addresses and are left out",
	lostPorts:    "are ports beyond the 64 that a service may have and are left out; if providers have ports of their own each, set servicePorts",
	lostSpeaks:   "speak a protocol that is not known and are spoken to by TCP; protocols may say otherwise",
	lostDiffers:  "are ports at which providers differ in what they speak; most of them are right",
	lostSame:     "are where another one is and are left out; the newer one counts",
	lostCase:     "belong to interfaces whose names differ from another's in case alone and are left out",
	lostHost:     "make no DNS name and are left out",
	lostLabels:   "have parameters that can be no labels, or more than 64",
	lostToken:    "want a token that Dubbo's consumers find in the registry; proxies don't give it",
	lostPolicy:   "have parameters that tell Dubbo's consumers how to call; proxies go by VirtualService and DestinationRule",
	lostTLS:      "speak TLS (ssl-enabled); a DestinationRule has to say so",
	lostExtra:    "speak another protocol at the same port (ext.protocol), which is not offered",
	lostOverride: "are overrides with more than weight and disabled in them; that is not done",
	lostRule:     "are rules for Dubbo's consumers (routers, the configuration center) that proxies don't follow; a VirtualService has to say so",
	lostMetadata: "don't say in ZooKeeper which interfaces they serve, and are known by application alone; have their applications say metadata-type: remote, or register by interface, too",
	lostHidden:   "may not be read; what was read last stays",
	lostLimit:    "are beyond a limit and are left out",
	lostRoot:     "is not there any more; what was read last stays until it is: is it another ZooKeeper, or one that has lost its disk?",
	lostGone:     "went while there was no session; they stay until settle has passed",
}

// informs are reasons that leave no endpoint out.
var informs = map[reason]bool{lostPolicy: true, lostLabels: true, lostGone: true}

// tally counts what was lost at one place, with an example of each reason.
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

// faults are what is to be shown of a place.
func (t tally) faults(place string) (all []kinds.Fault) {
	for _, r := range slices.Sorted(maps.Keys(t)) {
		f := kinds.Fault{File: "zookeeper:" + place, Reason: string(r), Field: string(r), Severity: finding.Warning, Message: fmt.Sprintf("%d (%s) %s", t[r].count, clip(t[r].of), explanations[r])}
		if informs[r] {
			f.Severity = finding.Info
		}
		all = append(all, f)
	}
	return all
}

// clip makes one line of at most 200 bytes, without what a URL has of users.
func clip(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
