package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// client asks Consul's HTTP API. Its methods may be called by several goroutines at once.
type client interface {
	// services asks for the names of a datacenter's services, each with all tags of its instances
	// (/v1/catalog/services).
	services(ctx context.Context, q question) answer
	// instances asks for a service's instances with their checks (/v1/health/service/NAME).
	instances(ctx context.Context, name string, q question) answer
	close()
}

// question is how something is asked.
type question struct {
	// datacenter is empty for the agent's own.
	datacenter string
	// index is that of the answer before: the answer waits until there is a newer one, or for wait.
	// 0: it comes at once.
	index uint64
	wait  time.Duration
	// consistent: what the leader says after it has made sure that it is the leader. direct: what
	// the servers' state says, not a view that is kept by a stream of events.
	consistent, direct bool
}

// byDistance orders instances by how far they are from the agent. Consul's views have no order, so
// that it answers from the servers' state. Source: Consul, agent/rpcclient/health, useStreaming.
const byDistance = "_agent"

// answer is what Consul said, or err.
type answer struct {
	names services
	listed
	// index is X-Consul-Index. leader: the server knows one, or the agent follows a stream of
	// events of one that does. filtered: there is more, which the token may not see. anonymous:
	// there was no token where it takes one to see anything, unless the anonymous token's policy
	// says otherwise; then Consul doesn't tell whether there is more.
	index                       uint64
	leader, filtered, anonymous bool
	// streamed: it comes from a view that is kept by a stream of events.
	streamed bool
	// same: the index is that of the answer before, so that there is nothing new, and the answer
	// was not read.
	same bool
	err  error
}

// count is how much it has: names or instances, whether they can be read or not.
func (a *answer) count() int {
	return len(a.names.all) + a.names.left + len(a.entries) + len(a.broken) + a.left
}

// services are names with the tags of their instances; nil: it was no list. left are how many were
// not read, beyond mostNames.
type services struct {
	all  map[string][]string
	left int
}

// mostNames is how many names of a list are read: Config.MaxServices is what is followed of them.
const mostNames = 1_000_000

// UnmarshalJSON reads names as far as there may be.
func (s *services) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin == nil {
		return err
	} else if begin != json.Delim('{') {
		return errors.New("the answer is no object of services")
	}
	s.all = map[string][]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var tags []string
		err = d.Decode(&tags)
		if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
			return err
		}
		if len(s.all) >= mostNames {
			s.left++
			continue
		}
		s.all[name.(string)] = tags
	}
	return nil
}

// listed are the instances of a service, each read by itself: one that can't be read harms no
// other. left are how many were not read, beyond most.
type listed struct {
	most    int
	entries []entry
	broken  []broken
	left    int
	// there: it was a list.
	there bool
}

// broken is an instance that can't be read; id is empty where not even that can.
type broken struct{ id, why string }

// UnmarshalJSON reads instances as far as there may be.
func (l *listed) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin == nil {
		return err
	} else if begin != json.Delim('[') {
		return errors.New("the answer is no list of instances")
	}
	l.there = true
	for d.More() {
		if len(l.entries)+len(l.broken) >= l.most {
			l.left++
			var passed ignored
			if err := d.Decode(&passed); err != nil {
				return err
			}
			continue
		}
		var e entry
		err := d.Decode(&e) // goes on after what has the wrong type, and says so at the end
		wrong := (*json.UnmarshalTypeError)(nil)
		switch {
		case err != nil && !errors.As(err, &wrong):
			return err
		case err == nil && e.Node.Node == "" && e.Service.ID == "":
			l.broken = append(l.broken, broken{why: "it has neither a node nor an ID"})
		case err != nil && (e.Node.Node == "" || e.Service.ID == ""):
			l.broken = append(l.broken, broken{why: err.Error()})
		case err != nil:
			l.broken = append(l.broken, broken{e.id(), err.Error()})
		default:
			l.entries = append(l.entries, e)
		}
	}
	return nil
}

// ignored reads anything and keeps nothing.
type ignored struct{}

// UnmarshalJSON takes anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// refusal is an answer that isn't 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("status %d: %s%s", r.status, instances.Clip(r.text), r.hint())
}

// hint says what to do.
func (r *refusal) hint() string {
	switch r.status {
	case 401, 403:
		return rights
	case 429:
		return "; it takes no more connections of one client at once: set watches lower, or its limits.http_max_conns_per_client higher"
	}
	return ""
}

// rights are those that a token needs.
const rights = `; its policy has to say service_prefix "" {policy = "read"} and node_prefix "" {policy = "read"}`

// entry is one of what /v1/health/service/NAME answers with. Fields that aren't read are left out.
// Source: Consul, "Health HTTP Endpoint", list service instances for service.
type entry struct {
	Node    node
	Service instance
	Checks  []check
}

type node struct {
	Node, Address, Datacenter, Partition string
	TaggedAddresses, Meta                map[string]string
	Locality                             *place
}

type instance struct {
	Kind, ID, Service, Address, SocketPath string
	Namespace, Partition, PeerName         string
	Port                                   int
	Ports                                  []port
	Tags                                   []string
	Meta                                   map[string]string
	TaggedAddresses                        map[string]taggedAddress
	Weights                                *weights
	Locality                               *place
}

type port struct {
	Name    string
	Port    int
	Default bool
}

type taggedAddress struct {
	Address string
	Port    int
}

type weights struct{ Passing, Warning int }

type place struct{ Region, Zone string }

type check struct{ CheckID, Status string }

// Statuses of instances, from the best to the worst.
const (
	passing     = "passing"
	warning     = "warning"
	critical    = "critical"
	maintenance = "maintenance"
)

// status is the worst of an instance's checks; without checks it passes. Maintenance, of a node or
// an instance, comes before all. A status that Consul doesn't have is critical. Source: Consul,
// api.HealthChecks.AggregatedStatus.
func (e *entry) status() string {
	out := passing
	for _, c := range e.Checks {
		switch {
		case c.CheckID == "_node_maintenance" || strings.HasPrefix(c.CheckID, "_service_maintenance:"):
			return maintenance
		case c.Status == passing:
		case c.Status == warning:
			if out == passing {
				out = warning
			}
		default:
			out = critical
		}
	}
	return out
}

// id is what makes an instance itself, in a datacenter and partition: its node and its own ID.
func (e *entry) id() string { return e.Node.Node + "/" + e.Service.ID }
