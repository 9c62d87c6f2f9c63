package eureka

import "github.com/coxswain-mesh/coxswain/plugins/internal/instances"

// Reasons why something of Eureka's is not in the mesh.
const (
	lostAddress instances.Reason = "address" // no IP address, or no DNS name either; the instance's last good one stays
	lostPort    instances.Reason = "port"    // no port is enabled, or one is not between 1 and 65535; the instance's last good one stays
	lostRecord  instances.Reason = "record"  // an instance that can't be read; its last good one stays
	lostStatus  instances.Reason = "status"  // none that Eureka has
	lostWeight  instances.Reason = "weight"  // metadata that is no weight; 1 counts
	lostRegion  instances.Reason = "region"  // a zone without a region
	lostLabel   instances.Reason = "label"   // metadata whose key can be no label
	lostLimit   instances.Reason = "limit"   // beyond maxInstances
	lostMissing instances.Reason = "missing" // the server has forgotten it; it stays for a while
)

// reasons is never changed.
var reasons = map[instances.Reason]instances.Meaning{
	lostAddress: {
		Effect: instances.Left,
		Text:   "have an address that is neither an IP address nor a DNS name; what they were before stays, new ones are left out",
	},
	lostPort: {Effect: instances.Left, Text: "have no port that is enabled, or one that is not between 1 and 65535; " +
		"without another one, what they were before stays, and new ones are left out"},
	lostRecord: {Effect: instances.Left, Text: "can't be read; what they were before stays, new ones are left out"},
	lostStatus: {Effect: instances.Partly, Text: "have a status that is none of UP, DOWN, STARTING, OUT_OF_SERVICE and UNKNOWN, and are taken for UNKNOWN"},
	lostWeight: {Effect: instances.Partly, Text: "have metadata for the weight that is no whole number; 1 counts"},
	lostRegion: {Effect: instances.Partly, Text: "are in a zone without a region, and so have no locality: set region"},
	lostLabel:  {Effect: instances.Partly, Text: "are metadata that can be no label"},
	lostLimit:  {Effect: instances.Left, Text: "are beyond maxInstances and are left out; what is there stays until there are fewer"},
	lostMissing: {Effect: instances.Kept, Text: "are not there any more since the server was started anew, or another " +
		"one answers; they stay for as long as their lease, or until keep has passed"},
}
