package eureka

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// view is what a server has, as its answers tell, and what it has forgotten. A server keeps all in
// memory: one that was started anew has nothing until everybody has registered again, another one
// has other memories, and neither says so.
//
// It has no clock.
type view struct {
	have map[string]*instance
	// status is that of each instance that the server has, whether it can be read or not, and
	// counts how many have it.
	status map[string]string
	counts map[string]int
	// held are those that the server has forgotten, as far as can be known, and that stay for a
	// while.
	held map[string]*held
	// bad are reasons why an instance can't be read. What it was before stays.
	bad map[string]string
	// changed are keys of which something changed since take.
	changed map[string]bool
	// most is how many instances there may be, left how many are left out of the last list.
	most, left int
}

type held struct {
	*instance
	// since is when a server that answers first lacked it; zero: not since it was away.
	since time.Time
}

func newView(most int) *view {
	return &view{
		most: most, have: map[string]*instance{}, status: map[string]string{}, counts: map[string]int{},
		held: map[string]*held{}, bad: map[string]string{}, changed: map[string]bool{},
	}
}

// errEmpty says why a list of everything is none.
var errEmpty = errors.New("it has no instance at all, as a server has that was just started; what was there before stays (allowEmpty: true believes it)")

// empty reports whether there is nothing that could be lost.
func (v *view) empty() bool { return len(v.have)+len(v.held) == 0 }

// full takes a list of everything. What it lacks goes if it is of the same server as the list
// before, and that remembers the others; otherwise it stays for a while.
func (v *view) full(l *list, same bool, now time.Time) error {
	counts := map[string]int{}
	for _, i := range l.instances {
		counts[i.Status]++
	}
	for _, b := range l.broken {
		counts[b.status]++
	}
	if l.hash != "" && l.left == 0 && hash(counts) != l.hash {
		return fmt.Errorf("it says that it has %s and lists %s", l.hash, hash(counts))
	}
	remembers, there := same && v.remembers(l), make(map[string]bool, len(l.instances))
	for _, i := range l.instances {
		there[i.key()] = true
	}
	for _, b := range l.broken {
		there[b.key()] = true
	}
	v.left = l.left
	for key, i := range v.have {
		if there[key] || l.left > 0 { // it may be among those that were not read
			continue
		}
		v.gone(key)
		if !remembers {
			v.held[key] = &held{i, now}
		}
	}
	for key := range v.bad {
		if !there[key] && l.left == 0 {
			v.gone(key)
		}
	}
	v.put(l)
	return nil
}

// remembers reports whether the server that made a list is the one that made the list before, and
// was not started anew: most of the instances that did not register again have the leases that they
// had.
func (v *view) remembers(l *list) bool {
	old, anew := 0, 0
	for _, i := range l.instances {
		switch was := v.have[i.key()]; {
		case was == nil || was.Dirty != i.Dirty:
		case was.Lease.Registered == i.Lease.Registered:
			old++
		default:
			anew++
		}
	}
	return old > anew
}

// delta takes a list of what changed, and reports whether the server has then what there is here.
func (v *view) delta(l *list) bool {
	var stay list
	for _, i := range l.instances {
		if i.Action != deleted {
			stay.instances = append(stay.instances, i)
			continue
		}
		v.gone(i.key())
	}
	for _, b := range l.broken {
		if b.action != deleted {
			stay.broken = append(stay.broken, b)
			continue
		}
		v.gone(b.key())
	}
	v.put(&stay)
	return l.hash == hash(v.counts)
}

// put takes instances that are there. Of one that can't be read, what it was before stays.
func (v *view) put(l *list) {
	for _, i := range l.instances {
		key := i.key()
		if !v.room(key) {
			continue
		}
		if was := v.have[key]; was == nil || v.bad[key] != "" || !was.same(i) {
			v.changed[key] = true
		}
		v.have[key] = i
		delete(v.bad, key)
		delete(v.held, key)
		v.count(key, i.Status)
	}
	for _, b := range l.broken {
		key, why := b.key(), b.why.Error()
		if !v.room(key) {
			continue
		}
		if v.bad[key] != why {
			v.bad[key], v.changed[key] = why, true
		}
		if h := v.held[key]; h != nil {
			v.have[key] = h.instance
			delete(v.held, key)
		}
		v.count(key, b.status)
	}
}

// room reports whether an instance is known, or may be; otherwise it is left out.
func (v *view) room(key string) bool {
	if v.have[key] != nil || v.held[key] != nil || v.bad[key] != "" || len(v.have)+len(v.held)+len(v.bad) < v.most {
		return true
	}
	v.left++
	return false
}

// key is that of the instance, or of its application where it has none.
func (b *broken) key() string { return b.app + "/" + b.id }

// count notes the status that the server has of an instance.
func (v *view) count(key, status string) {
	v.discount(key)
	v.status[key] = status
	v.counts[status]++
}

func (v *view) discount(key string) {
	if was, ok := v.status[key]; ok {
		if v.counts[was]--; v.counts[was] == 0 {
			delete(v.counts, was)
		}
		delete(v.status, key)
	}
}

// gone takes out what is gone.
func (v *view) gone(key string) {
	if v.have[key] != nil || v.held[key] != nil || v.bad[key] != "" {
		v.changed[key] = true
	}
	v.discount(key)
	delete(v.have, key)
	delete(v.bad, key)
	delete(v.held, key)
}

// away notes that no server answers: how long something has been missing counts from when one does
// again.
func (v *view) away() {
	for _, h := range v.held {
		h.since = time.Time{}
	}
}

// usualLease is how long an instance is believed to live that doesn't say.
// Source: com.netflix.appinfo.LeaseInfo.DEFAULT_LEASE_DURATION.
const usualLease = 90 * time.Second

// expire takes out what has been missing for longer than its lease, and than most.
func (v *view) expire(now time.Time, most time.Duration) {
	for key, h := range v.held {
		if h.since.IsZero() {
			h.since = now
		}
		if now.Sub(h.since) >= min(h.lease(), most) {
			delete(v.held, key)
			v.changed[key] = true
		}
	}
}

func (i *instance) lease() time.Duration {
	if s, err := strconv.ParseInt(string(i.Lease.Duration), 10, 32); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	return usualLease
}

// drain returns what changed since it was asked last.
func (v *view) drain() map[string]bool {
	out := v.changed
	v.changed = map[string]bool{}
	return out
}
