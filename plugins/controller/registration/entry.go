package registration

import (
	"encoding/json"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Annotations of entries. All but the last are istiod's, too.
const (
	groupAnnotation      = "istio.io/autoRegistrationGroup"
	controllerAnnotation = "istio.io/workloadController"
	connectedAnnotation  = "istio.io/connectedAt"
	goneAnnotation       = "istio.io/disconnectedAt"
	checkedAnnotation    = "proxy.istio.io/health-checks-enabled"
	identityAnnotation   = "registration.coxswain.io/identity"
)

// timeFormat is how annotations say times.
const timeFormat = time.RFC3339Nano

// entry is what counts of a WorkloadEntry.
type entry struct {
	// group is the one that it was made of, and controller who wrote last whether its agent is
	// connected: empty where it is none that was made for an agent.
	group, controller string
	// connected is since when its agent is, gone since when it is not; one of them is the zero
	// time.
	connected, gone time.Time
	// isConnected: it says that its agent is, be it that nobody can read since when.
	isConnected bool
	// identity is that of its agent, where it is said; account the service account that it names.
	identity, account string
	address, network  string
	// checked: its health is checked. health is the status of that condition, and message, of
	// objects, its message.
	checked         bool
	health, message string
}

// automatic reports whether it was made for an agent. Others are never touched.
func (e *entry) automatic() bool { return e.group != "" && e.controller != "" }

// stale reports whether its agent has gone for as long as the grace is.
func (e *entry) stale(now time.Time, grace time.Duration) bool {
	return !e.isConnected && !e.gone.IsZero() && !now.Before(e.gone.Add(grace))
}

// annotated reads annotations.
func annotated(of map[string]string) *entry {
	e := &entry{group: of[groupAnnotation], controller: of[controllerAnnotation], identity: of[identityAnnotation]}
	_, e.checked = of[checkedAnnotation]
	if at, ok := of[connectedAnnotation]; ok {
		e.isConnected = true
		e.connected, _ = time.Parse(timeFormat, at)
	} else if at, ok := of[goneAnnotation]; ok {
		e.gone, _ = time.Parse(timeFormat, at)
	}
	return e
}

// ofRow reads a row; nil: it is not readable, which no config source publishes.
func ofRow(row *pb.Row) *entry {
	spec, err := kinds.Decode[*networking.WorkloadEntry](row)
	if err != nil {
		return nil
	}
	e := annotated(row.Annotations)
	e.account, e.address, e.network, e.health = spec.ServiceAccount, spec.Address, spec.Network, row.Annotations[kinds.HealthCondition]
	return e
}

// ofObject reads an object.
func ofObject(text []byte) (*entry, error) {
	var o struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct{ Address, Network, ServiceAccount string }
		Status   struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	e := annotated(o.Metadata.Annotations)
	e.account, e.address, e.network = o.Spec.ServiceAccount, o.Spec.Address, o.Spec.Network
	for _, c := range o.Status.Conditions {
		if c.Type == healthy {
			e.health, e.message = c.Status, c.Message
		}
	}
	return e, nil
}

// healthy is the type of the condition.
const healthy = "Healthy"

// step is what is to be done next about an entry.
type step int

const (
	// nothing is to be done, or not by this replica.
	nothing step = iota
	// create it for an agent.
	create
	// claim it for an agent that is connected to this replica.
	claim
	// part: its agent has gone.
	part
	// remove it: its agent has gone for long.
	remove
	// report the health.
	report
	// refuse the agent.
	refuse
)

// view is what a decision is made by.
type view struct {
	me    string
	now   time.Time
	grace time.Duration
	// settled: agents that are connected to this replica are known.
	settled bool
	// reports: the health is written.
	reports bool
	// exact: the entry was read from its object, so that the message of its health counts.
	exact bool
}

// next decides about an entry, nil where there is none, and the agent of it that connected last to
// this replica; nil: none is connected. at is when to look again, if not at a change, and why why
// an agent is refused.
func (v view) next(e *entry, a *agent) (s step, at time.Time, why string) {
	switch {
	case a == nil && (e == nil || !e.automatic() || e.controller != v.me):
		return nothing, at, ""
	case a == nil && e.isConnected:
		if !v.settled {
			return nothing, at, ""
		}
		return part, at, ""
	case a == nil && e.stale(v.now, v.grace):
		return remove, at, ""
	case a == nil && e.gone.IsZero():
		return nothing, at, ""
	case a == nil:
		return nothing, e.gone.Add(v.grace), ""
	case e == nil:
		return create, at, ""
	}
	switch {
	case !e.automatic():
		return refuse, at, "there is an entry of its name, which was not made for an agent"
	case e.group != a.group || e.address != a.address || a.network != "" && e.network != a.network:
		return refuse, at, "the entry of its name is that of another group, address or network"
	case e.identity != "" && !a.is(e.identity), !a.has(e.account):
		return refuse, at, "the entry of its name is that of another identity"
	}
	mine := e.controller == v.me
	switch {
	case !e.isConnected, mine && !e.connected.Equal(a.since), a.since.After(e.connected):
		return claim, at, ""
	case mine && v.reports && e.checked && v.differs(e, a):
		return report, at, ""
	}
	return nothing, at, ""
}

// differs reports whether an entry doesn't say what its agent says of the health.
func (v view) differs(e *entry, a *agent) bool {
	switch {
	case a.word == nil:
		return false
	case v.exact:
		return e.health != status(*a.word) || e.message != *a.word
	default:
		return e.health != status(*a.word) || a.unsaid()
	}
}

// status is the condition's, for what an agent said.
func status(word string) string {
	if word == "" {
		return "True"
	}
	return "False"
}
