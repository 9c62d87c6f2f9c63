package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// leaseName is the Lease of the replica that sweeps; each has one of its own beside it, which says
// that it runs: this name, a dash, and the end of the replica's.
const leaseName = "coxswain-registration"

// digits are those of the end of a replica's name.
const digits = 16

// replicaName is what a replica is called in entries: a host, and what is different at each start
// of its core.
func replicaName(host string, epoch uint64) string {
	return fmt.Sprintf("%s-%0*x", host, digits, epoch)
}

// leaseOf is the Lease of a replica, if its name is one: other control planes have other names.
func leaseOf(replica string) (name string, ok bool) {
	i := strings.LastIndexByte(replica, '-')
	if end := replica[i+1:]; i > 0 && len(end) == digits && strings.Trim(end, "0123456789abcdef") == "" {
		return leaseName + "-" + end, true
	}
	return "", false
}

// live keeps this replica's Lease until ctx ends.
func (c *controller) live(ctx context.Context) {
	name, _ := leaseOf(c.me)
	e := lead.Election{
		Objects: c.objects, Namespace: c.config.Namespace, Name: name, Duration: c.config.Lease,
		Log: func(level sdk.Level, text string, args ...any) {
			if level > sdk.Info { // who holds its own Lease doesn't lead
				c.out.Log(level, text, args...)
			}
		},
	}
	_ = e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
}

// pulse is since when a replica's Lease has been as it is; text is empty where there is none.
type pulse struct {
	text  string
	since time.Time
}

// sweep looks after entries that nobody else does, until ctx ends: of replicas that are gone, of
// agents that are gone for long, and of groups that are.
func (c *controller) sweep(ctx context.Context) error {
	pulses := map[string]pulse{}
	tick := time.NewTicker(max(c.config.Grace/2, time.Second))
	defer tick.Stop()
	for {
		if err := c.round(ctx, pulses); err != nil && ctx.Err() == nil && c.lines.Allow() {
			c.out.Log(sdk.Warn, "entries of replicas that are gone were not looked after; it is tried again", "error", err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// round is one round of a sweep.
func (c *controller) round(ctx context.Context, pulses map[string]pulse) error {
	dead, err := c.dead(ctx, pulses)
	if err != nil {
		return err
	}
	for key, e := range c.swept(dead) {
		limited, cancel := context.WithTimeout(ctx, patience)
		err := c.drop(limited, key, e, dead)
		cancel()
		if code := sdk.CodeOf(err); err != nil && code != sdk.StoreConflict {
			return err
		}
	}
	return nil
}

// swept are entries that have to go, or to say that their agent has.
func (c *controller) swept(dead func(string) bool) map[string]*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, now := map[string]*entry{}, time.Now()
	for key, e := range c.entries {
		namespace, _ := kinds.SplitKey(key)
		switch {
		case !e.automatic():
		case !c.groups[kinds.Key(namespace, e.group)],
			len(c.byKey[key]) == 0 && e.stale(now, c.config.Grace),
			e.isConnected && e.controller != c.me && dead(e.controller):
			out[key] = e.entry
		}
	}
	return out
}

// drop does for an entry what is to be done, if its object is still as its row was.
func (c *controller) drop(ctx context.Context, key string, was *entry, dead func(string) bool) error {
	e, text, err := c.get(ctx, key)
	if err != nil || e == nil || !e.automatic() || e.group != was.group {
		return err
	}
	namespace, _ := kinds.SplitKey(key)
	_, err = c.objects.Get(ctx, kinds.WorkloadGroup, namespace, e.group)
	gone := sdk.CodeOf(err) == sdk.StoreNotFound
	if err != nil && !gone {
		return err
	}
	if err := c.writes.Wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	orphan := len(c.byKey[key]) == 0
	c.mu.Unlock()
	what, count := "removed the entry of an agent that has gone", &c.counts.removed
	switch {
	case gone, orphan && e.stale(time.Now(), c.config.Grace):
		err = c.remove(ctx, key, text)
	case e.isConnected && e.controller != c.me && dead(e.controller):
		what, count = "the replica that an agent was connected to has gone", &c.counts.parted
		err = c.part(ctx, text)
	default:
		return nil
	}
	if err == nil {
		c.mu.Lock()
		*count++
		c.mu.Unlock()
		c.out.Log(sdk.Info, what, "entry", key, "replica", e.controller)
	}
	return err
}

// dead looks at the Leases of replicas, and returns which replicas are gone. Leases of such that
// have no entries are deleted.
func (c *controller) dead(ctx context.Context, pulses map[string]pulse) (func(replica string) bool, error) {
	leases := map[string]leaseObject{}
	if !c.config.Alone {
		var err error
		if leases, err = c.leases(ctx); err != nil {
			return nil, err
		}
	}
	now, own := time.Now(), leaseName
	own, _ = leaseOf(c.me)
	c.mu.Lock()
	used := map[string]bool{own: true}
	for _, e := range c.entries {
		if name, ok := leaseOf(e.controller); ok && e.automatic() {
			used[name] = true
		}
	}
	c.mu.Unlock()
	for name := range pulses {
		if _, there := leases[name]; !there && !used[name] {
			delete(pulses, name)
		}
	}
	for name := range used {
		if p, known := pulses[name]; !known || p.text != leases[name].text {
			pulses[name] = pulse{leases[name].text, now}
		}
	}
	for name, l := range leases {
		if p, known := pulses[name]; !known || p.text != l.text {
			pulses[name] = pulse{l.text, now}
		}
	}
	ended := func(name string) bool {
		l, there := leases[name]
		return c.config.Alone || there && l.holder == "" || now.Sub(pulses[name].since) > 2*c.config.Lease+c.config.Grace
	}
	for name, l := range leases {
		if !used[name] && ended(name) {
			if err := c.objects.Delete(ctx, lead.Table, c.config.Namespace, name, l.version); err != nil &&
				sdk.CodeOf(err) != sdk.StoreConflict && sdk.CodeOf(err) != sdk.StoreNotFound {
				return nil, err
			}
		}
	}
	return func(replica string) bool {
		name, ok := leaseOf(replica)
		return ok && name != own && ended(name)
	}, nil
}

// leaseObject is what counts of a replica's Lease.
type leaseObject struct{ holder, text, version string }

// leases are those of replicas, by name.
func (c *controller) leases(ctx context.Context) (map[string]leaseObject, error) {
	out := map[string]leaseObject{}
	for page := ""; ; {
		all, next, err := c.objects.List(ctx, lead.Table, c.config.Namespace, sdk.Page{Page: page})
		if err != nil {
			return nil, err
		}
		for _, text := range all {
			var l struct {
				Metadata struct{ Name, ResourceVersion string }
				Spec     struct{ HolderIdentity, RenewTime string }
			}
			if json.Unmarshal(text, &l) == nil && strings.HasPrefix(l.Metadata.Name, leaseName+"-") {
				out[l.Metadata.Name] = leaseObject{l.Spec.HolderIdentity, l.Spec.HolderIdentity + " " + l.Spec.RenewTime, l.Metadata.ResourceVersion}
			}
		}
		if page = next; page == "" {
			return out, nil
		}
	}
}
