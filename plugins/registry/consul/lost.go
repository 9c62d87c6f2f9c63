package consul

import "github.com/coxswain-mesh/coxswain/plugins/internal/instances"

// Reasons why something of Consul's is not in the mesh.
const (
	lostKind     instances.Reason = "kind"      // a proxy or gateway of Consul's own mesh
	lostAddress  instances.Reason = "address"   // neither an IP address nor a DNS name; the instance's last good one stays
	lostPort     instances.Reason = "port"      // not between 1 and 65535; 0: it has none. The instance's last good one stays
	lostSocket   instances.Reason = "socket"    // a Unix socket: it is on its own machine alone
	lostPortMeta instances.Reason = "port-meta" // metadata that is no port; the instance's own counts
	lostTag      instances.Reason = "tag"       // a tag that can be no label
	lostTwice    instances.Reason = "twice"     // a tag that says otherwise than metadata or an earlier tag
	lostAnswer   instances.Reason = "answer"    // an answer that can't be used; the last good one stays
	lostHidden   instances.Reason = "hidden"    // the token may not see any more what it saw; it stays
	lostRecord   instances.Reason = "record"    // an instance that can't be read; its last good one stays
	lostService  instances.Reason = "service"   // a name that no service can have
	lostLimit    instances.Reason = "limit"     // beyond maxServices or maxInstances
)

// reasons is never changed.
var reasons = map[instances.Reason]instances.Meaning{
	lostKind: {Effect: instances.Left, Text: "belong to Consul's own mesh (proxies, gateways) and are left out"},
	lostAddress: {
		Effect: instances.Left,
		Text:   "have an address that is neither an IP address nor a DNS name; what they were before stays, new ones are left out",
	},
	lostPort:     {Effect: instances.Left, Text: "have no port, or none between 1 and 65535; what they were before stays, new ones are left out"},
	lostSocket:   {Effect: instances.Left, Text: "listen on a Unix socket of their machine and are left out"},
	lostPortMeta: {Effect: instances.Partly, Text: "have metadata for the service's port that is no port; their own port counts"},
	lostTag:      {Effect: instances.Partly, Text: "are tags that can be no label"},
	lostTwice:    {Effect: instances.Partly, Text: "are tags that say otherwise than metadata or an earlier tag, which count"},
	lostRecord:   {Effect: instances.Left, Text: "can't be read; what they were before stays, new ones are left out"},
	lostService: {
		Effect: instances.Left,
		Text:   "have a name that no service can have (empty, with control characters, or a path that leads elsewhere) and are left out",
	},
	lostLimit:  {Effect: instances.Left, Text: "are beyond maxServices or maxInstances and are left out"},
	lostAnswer: {Effect: instances.Kept, Text: "can't be read; what was read last stays", Told: true},
	lostHidden: {
		Effect: instances.Kept,
		Text:   "are hidden by Consul's ACLs since the token's rights became less; what was read last stays until the plugin is restarted",
		Told:   true,
	},
}
