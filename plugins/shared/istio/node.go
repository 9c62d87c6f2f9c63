package istio

import "strings"

// NodeID is what the id of a proxy says: TYPE~ADDRESS~NAME.NAMESPACE~DOMAIN, such as
// sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local.
type NodeID struct{ Type, Address, Name, Namespace, Domain string }

// ParseNodeID reads an id; ok is false for those of another form.
func ParseNodeID(id string) (n NodeID, ok bool) {
	parts := strings.Split(id, "~")
	if len(parts) != 4 {
		return NodeID{}, false
	}
	n = NodeID{Type: parts[0], Address: parts[1], Domain: parts[3]}
	n.Name, n.Namespace, _ = strings.Cut(parts[2], ".")
	return n, true
}

// Short is how people name the proxy: NAME.NAMESPACE, or NAME where it is in none.
func (n NodeID) Short() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Name + "." + n.Namespace
}
