package guard

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/view"
	"google.golang.org/protobuf/encoding/protowire"
)

// leadTo are the types that name clusters: Envoy's routes (RouteAction.cluster, WeightedCluster)
// and listeners (TcpProxy.cluster).
var leadTo = []string{"type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "type.googleapis.com/envoy.config.listener.v3.Listener"}

// leavesDeadEnds reports whether clusters go that what a connection keeps still leads to, and notes
// which: requests would be answered with 503.
func (l *Loss[C]) leavesDeadEnds(next Shown[C]) bool {
	if !strings.HasSuffix(l.typeURL, "/envoy.config.cluster.v3.Cluster") {
		return false
	}
	seen := map[*view.Snapshot]bool{}
	for _, conn := range l.conns {
		for _, url := range leadTo {
			snap, ok := next[conn][url]
			if !ok {
				snap = conn.Visible(url)
			}
			if snap == nil || seen[snap] {
				continue
			}
			seen[snap] = true
			for b := range slices.Values(snap.Bodies()) {
				l.leads(b.Value())
			}
		}
	}
	slices.Sort(l.deadEnds)
	return len(l.deadEnds) > 0
}

// leads notes the clusters that go and that a message names: each as a field of its own, by its
// length and then its text.
func (l *Loss[C]) leads(message []byte) {
	for _, name := range l.gone {
		field := protowire.AppendString(nil, name)
		if !slices.Contains(l.deadEnds, name) && bytes.Contains(message, field) {
			l.deadEnds = append(l.deadEnds, name)
		}
	}
}
