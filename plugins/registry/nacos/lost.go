package nacos

import "github.com/coxswain-mesh/coxswain/plugins/internal/instances"

// Reasons why something of Nacos' is not in the mesh.
const (
	lostAddress   instances.Reason = "address"   // neither an IP address nor a DNS name; the instance's last good one stays
	lostPort      instances.Reason = "port"      // a port that is not between 1 and 65535; the instance's last good one stays
	lostRecord    instances.Reason = "record"    // an instance that can't be read; its last good one stays
	lostWeight    instances.Reason = "weight"    // no weight; 1 counts
	lostSpeaks    instances.Reason = "speaks"    // a protocol that isn't known; TCP counts
	lostRegion    instances.Reason = "region"    // a zone without a region
	lostLabel     instances.Reason = "label"     // metadata whose key can be no label
	lostMissing   instances.Reason = "missing"   // the server has forgotten it; it stays for a while
	lostProtected instances.Reason = "protected" // the server says that all are healthy
	lostRefused   instances.Reason = "refused"   // the server doesn't tell; what there was stays
	lostLimit     instances.Reason = "limit"     // beyond limits of the config
)

// reasons is never changed.
var reasons = map[instances.Reason]instances.Meaning{
	lostAddress: {
		Effect: instances.Left,
		Text:   "have an address that is neither an IP address nor a DNS name; what they were before stays, new ones are left out",
	},
	lostPort: {
		Effect: instances.Left,
		Text:   "have a port, their own or one in metadata, that is not between 1 and 65535; what they were before stays, new ones are left out",
	},
	lostRecord: {Effect: instances.Left, Text: "can't be read; what they were before stays, new ones are left out"},
	lostWeight: {Effect: instances.Partly, Text: "have a weight that is none between 0 and 10000; 1 counts"},
	lostSpeaks: {Effect: instances.Partly, Text: "have metadata for the protocol that names none that is known; they are taken to speak TCP"},
	lostRegion: {Effect: instances.Partly, Text: "are in a zone without a region, and so have no locality: set region"},
	lostLabel:  {Effect: instances.Partly, Text: "are metadata that can be no label"},
	lostMissing: {
		Effect: instances.Kept,
		Text:   "are not there any more since the server was started anew, or another one answers; they stay until keep has passed",
	},
	lostProtected: {Effect: instances.Partly, Text: "are said to be healthy, whether they are or not, since too few are (protectThreshold)"},
	lostRefused:   {Effect: instances.Kept, Text: "are not told of any more; what they were before stays"},
	lostLimit:     {Effect: instances.Left, Text: "are beyond limits.services or limits.instances and are left out"},
}
