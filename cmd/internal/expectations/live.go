package expectations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// runLive plays a file's expectations on what the proxies of a control plane are to have. It reads
// debug pages alone.
func (r Runner) runLive(ctx context.Context, f *File) (*Report, error) {
	raw, err := r.Live(ctx, "/debug/nodes")
	if err != nil {
		return nil, err
	}
	connected, err := plan.ParseProxies(raw)
	if err != nil {
		return nil, fmt.Errorf("/debug/nodes: %w; is it a control plane of this version?", err)
	}
	w := newWorld(f)
	w.read = func(p *proxy) (*simulator.Config, error) {
		raw, err := r.Live(ctx, "/debug/config_dump?proxyID="+url.QueryEscape(p.node.Id))
		if err != nil {
			return nil, err
		}
		return simulator.Read(raw)
	}
	if err := w.ofConnected(connected); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	raw, err = r.Live(ctx, "/debug/configs")
	if err != nil {
		return nil, err
	}
	var objects []admin.Object
	if err := json.Unmarshal(raw, &objects); err != nil {
		return nil, fmt.Errorf("/debug/configs: %w; is it a control plane of this version?", err)
	}
	return w.report(objects, "", r.Only)
}

// ofConnected finds the workloads of the file among the connected proxies, and notes all others by
// the names that their nodes have, so that requests go on through these.
func (w *world) ofConnected(connected []plan.Proxy) error {
	slices.SortFunc(connected, func(a, b plan.Proxy) int { return cmp.Compare(a.Node.Id, b.Node.Id) })
	taken := map[string]bool{}
	for _, name := range sortedKeys(w.file.Workloads) {
		of := w.file.Workloads[name]
		i := slices.IndexFunc(connected, func(p plan.Proxy) bool { return !taken[p.Node.Id] && of.is(p.Node) })
		if i < 0 {
			return fmt.Errorf("workloads.%s: no connected proxy is one of it: a %s in namespace %s%s; `coxswain proxies` lists those that are connected",
				name, of.Type, of.namespace(), of.more())
		}
		taken[connected[i].Node.Id] = true
		if err := w.connected(name, connected[i].Node); err != nil {
			return fmt.Errorf("workloads.%s: %w", name, err)
		}
	}
	for _, p := range connected {
		id, ok := istio.ParseNodeID(p.Node.Id)
		if !ok || taken[p.Node.Id] || w.proxies[id.Short()] != nil {
			continue
		}
		taken[p.Node.Id] = true
		_ = w.connected(id.Short(), p.Node) // one without an address is behind no endpoint
	}
	return nil
}

// connected notes a proxy that is.
func (w *world) connected(name string, n *corev3.Node) error {
	id, _ := istio.ParseNodeID(n.Id)
	ip, err := netip.ParseAddr(id.Address)
	if err != nil {
		return errors.New("the id of its node has no address: " + n.Id)
	}
	fields := n.GetMetadata().GetFields()
	var others []netip.Addr
	for text := range strings.SplitSeq(fields["INSTANCE_IPS"].GetStringValue(), ",") {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			others = append(others, a)
		}
	}
	namespace := namespaceOf(n, id)
	w.add(name, &proxy{
		node: n, sidecar: id.Type == bootstrap.Sidecar, namespace: namespace, ip: ip,
		identity: identity(cmp.Or(fields["SERVICE_ACCOUNT"].GetStringValue(), "default"), namespace, w.file.TrustDomain),
	}, others...)
	return nil
}

func namespaceOf(n *corev3.Node, id istio.NodeID) string {
	return cmp.Or(n.GetMetadata().GetFields()["NAMESPACE"].GetStringValue(), id.Namespace)
}

// is reports whether a connected proxy is one of the workload: by type, namespace and, where they
// are said, service account, cluster, network and labels. Its address doesn't count.
func (w *Workload) is(n *corev3.Node) bool {
	id, ok := istio.ParseNodeID(n.Id)
	fields := n.GetMetadata().GetFields()
	text := func(key string) string { return fields[key].GetStringValue() }
	if !ok || id.Type != w.Type || namespaceOf(n, id) != w.namespace() ||
		w.ServiceAccount != "" && cmp.Or(text("SERVICE_ACCOUNT"), "default") != w.ServiceAccount ||
		w.ClusterID != "" && text("CLUSTER_ID") != w.ClusterID || w.Network != "" && text("NETWORK") != w.Network {
		return false
	}
	labels := fields["LABELS"].GetStructValue().GetFields()
	for key, value := range w.Labels {
		if labels[key].GetStringValue() != value {
			return false
		}
	}
	return true
}

// more says what else is asked of a proxy.
func (w *Workload) more() (text string) {
	if w.ServiceAccount != "" {
		text += ", service account " + w.ServiceAccount
	}
	for _, key := range sortedKeys(w.Labels) {
		text += fmt.Sprintf(", label %s=%s", key, w.Labels[key])
	}
	return text
}
