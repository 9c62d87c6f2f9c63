package registration

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// groupKey is the key of a node's metadata by which an agent asks for an entry: it names the
// group.
const groupKey = "AUTO_REGISTER_GROUP"

// healthType is the type by which agents say how their workload is.
const healthType = "type.googleapis.com/istio.v1.HealthInformation"

// agent is a connected agent that may have an entry.
type agent struct {
	connection uint64
	// key is that of its entry, which is of a group, in the group's namespace.
	key, namespace, group string
	address, network      string
	locality              string
	labels                map[string]string
	// checked: it checks its workload's health.
	checked    bool
	identities []istio.Identity
	since      time.Time
	// word is what it said last of the health; nil: nothing, empty: it is good.
	word *string
	// told is what of that is known to be written.
	told *string
}

// unsaid reports whether it said something that may not be written yet.
func (a *agent) unsaid() bool { return a.word != nil && (a.told == nil || *a.told != *a.word) }

// has reports whether one of its identities is of a service account of its namespace; of any,
// where none is named.
func (a *agent) has(account string) bool {
	return account == "" || slices.ContainsFunc(a.identities, func(i istio.Identity) bool { return i.ServiceAccount == account })
}

// identity is the one that its entry is said to be of.
func (a *agent) identity() string { return a.identities[0].String() }

// is reports whether one of its identities is this one.
func (a *agent) is(identity string) bool {
	return slices.ContainsFunc(a.identities, func(i istio.Identity) bool { return i.String() == identity })
}

// read returns what a client is that asks for an entry; the error says why it may not have one.
func (c *Config) read(client sdk.Client) (*agent, error) {
	var node corev3.Node
	if err := proto.Unmarshal(client.Node, &node); err != nil {
		return nil, errors.New("its node can't be read")
	}
	f := node.GetMetadata().GetFields()
	id, _ := istio.ParseNodeID(node.Id)
	a := &agent{
		connection: client.Connection, namespace: f["NAMESPACE"].GetStringValue(), group: f[groupKey].GetStringValue(), network: f["NETWORK"].GetStringValue(),
		labels: texts(f["LABELS"]), checked: f["PROXY_CONFIG"].GetStructValue().GetFields()["readinessProbe"] != nil, since: client.Since.UTC(),
	}
	if l := node.Locality; l != nil {
		a.locality = strings.TrimRight(strings.Join([]string{l.Region, l.Zone, l.SubZone}, "/"), "/")
	}
	if a.namespace == "" {
		a.namespace = id.Namespace
	}
	switch {
	case client.Plain:
		return nil, errors.New("it is connected in plain text: agents register by TLS alone")
	case a.group == "" || a.namespace == "":
		return nil, errors.New("its metadata names no namespace, or no group in " + groupKey)
	}
	for _, text := range client.Identities {
		if i, ok := istio.ParseIdentity(text); ok && i.Namespace == a.namespace {
			a.identities = append(a.identities, i)
		}
	}
	if len(a.identities) == 0 {
		return nil,
			fmt.Errorf("it has shown no identity of namespace %q: an agent needs a certificate, or a token, of a service account there", clip(a.namespace))
	}
	claimed, err := address(f["INSTANCE_IPS"].GetStringValue(), id.Address)
	if err != nil {
		return nil, err
	}
	if err := c.believes(claimed, client.RemoteAddress); err != nil {
		return nil, err
	}
	a.address = claimed.String()
	name := entryName(a.group, a.address, a.network)
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return nil, fmt.Errorf("%q can't be the name of its entry: %s", clip(name), wrong[0])
	}
	a.key = kinds.Key(a.namespace, name)
	return a, nil
}

// entryName is how istiod names the entry, too.
func entryName(group, address, network string) string {
	name := group + "-" + strings.ReplaceAll(address, ":", "-")
	if network != "" {
		name += "-" + network
	}
	return name
}

// address is the one that an agent claims: the first of those that its metadata lists, otherwise
// its id's.
func address(listed, fromID string) (netip.Addr, error) {
	first, _, _ := strings.Cut(listed, ",")
	if first = strings.TrimSpace(first); first == "" {
		first = fromID
	}
	a, err := netip.ParseAddr(first)
	if a = a.Unmap(); err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("it claims no address: %q is none, neither in INSTANCE_IPS nor in its id", clip(first))
	}
	return a, nil
}

// believes checks the address that an agent claims against that of its connection.
func (c *Config) believes(claimed netip.Addr, remote string) error {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	from, err := netip.ParseAddr(host)
	if err != nil {
		return errors.New("nobody knows from where it is connected")
	}
	from = from.Unmap().WithZone("")
	if from == claimed || slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return nil
	}
	return fmt.Errorf("it claims the address %s and is connected from %s: if there is a proxy in between, name its address in proxies", claimed, from)
}

// texts are those of an object's values that are texts.
func texts(v *structpb.Value) map[string]string {
	out := map[string]string{}
	for k, v := range v.GetStructValue().GetFields() {
		if s, ok := v.Kind.(*structpb.Value_StringValue); ok {
			out[k] = s.StringValue
		}
	}
	return out
}

// clip is a text of a client, for a log.
func clip(text string) string { return text[:min(len(text), 100)] }
