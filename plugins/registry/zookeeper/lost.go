package zookeeper

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Reasons why something of a service is not in the mesh.
const (
	lostAddress  instances.Reason = "address"
	lostPort     instances.Reason = "port"
	lostSpeaks   instances.Reason = "speaks"
	lostCase     instances.Reason = "case"
	lostLabels   instances.Reason = "labels"
	lostToken    instances.Reason = "token"
	lostPolicy   instances.Reason = "policy"
	lostTLS      instances.Reason = "tls"
	lostExtra    instances.Reason = "ext-protocol"
	lostOverride instances.Reason = "override"
	lostRule     instances.Reason = "rule"
	lostMetadata instances.Reason = "metadata"
	lostHidden   instances.Reason = "hidden"
	lostAnswer   instances.Reason = "answer"
	lostName     instances.Reason = "name-of-node"
	lostLimit    instances.Reason = "limit"
	lostGone     instances.Reason = "gone"
	lostRoot     instances.Reason = "root"
)

// explanations are for people.
var explanations = map[instances.Reason]string{
	lostAddress:        "have an address that is neither an IP address nor a DNS name, or that of all of a machine's, and are left out",
	lostPort:           "have no port and are left out",
	instances.Name:     "have a DNS name where others have IP addresses and are left out",
	instances.Ports:    "are ports beyond the 64 that a service may have and are left out; if providers have ports of their own each, set servicePorts",
	lostSpeaks:         "speak a protocol that is not known and are spoken to by TCP; protocols may say otherwise",
	instances.Protocol: "are ports at which providers differ in what they speak; most of them are right",
	instances.Same:     "are where another one is and are left out; the newer one counts",
	lostCase:           "belong to interfaces whose names differ from another's in case alone and are left out",
	instances.Host:     "make no DNS name and are left out",
	lostLabels:         "have parameters that can be no labels, or more than 64",
	lostToken:          "want a token that Dubbo's consumers find in the registry; proxies don't give it",
	lostPolicy:         "have parameters that tell Dubbo's consumers how to call; proxies go by VirtualService and DestinationRule",
	lostTLS:            "speak TLS (ssl-enabled); a DestinationRule has to say so",
	lostExtra:          "speak another protocol at the same port (ext.protocol), which is not offered",
	lostOverride:       "are overrides with more than weight and disabled in them; that is not done",
	lostRule:           "are rules for Dubbo's consumers (routers, the configuration center) that proxies don't follow; a VirtualService has to say so",
	lostMetadata: "don't say in ZooKeeper which interfaces they serve, and are known by application alone; have " +
		"their applications say metadata-type: remote, or register by interface, too",
	lostHidden: "may not be read; what was read last stays",
	lostAnswer: "can't be read: ZooKeeper answers with an error, or with more than limits.answerBytes (4 MiB of a value); what was read last stays",
	lostName:   "are nodes with a name that no node can have, and are left out",
	lostLimit:  "are beyond a limit and are left out",
	lostRoot:   "is not there any more; what was read last stays until it is: is it another ZooKeeper, or one that has lost its disk?",
	lostGone:   "went while there was no session; they stay until settle has passed",
}

// informs are reasons that leave no endpoint out.
var informs = map[instances.Reason]bool{lostPolicy: true, lostLabels: true, lostGone: true}

// faults are what is to be shown of a place.
func faults(t instances.Tally, place string) (all []kinds.Fault) {
	for _, r := range slices.Sorted(maps.Keys(t)) {
		f := kinds.Fault{
			File: "zookeeper:" + place, Reason: string(r), Field: string(r), Severity: finding.Warning,
			Message: fmt.Sprintf("%d (%s) %s", t[r].Count, clip(t[r].Of), explanations[r]),
		}
		if informs[r] {
			f.Severity = finding.Info
		}
		all = append(all, f)
	}
	return all
}

// clip makes one printable line of at most 200 bytes.
func clip(text string) string { return said.Line(text, 200) }
