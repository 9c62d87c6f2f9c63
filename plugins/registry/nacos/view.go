package nacos

import "time"

// key is a service's.
type key struct{ namespace, group, name string }

func (k key) String() string { return k.namespace + "/" + k.group + "/" + k.name }

// view is what Nacos has, as its answers tell, and what it has forgotten: registrations live in its
// memory, and a server that was started anew has none until everybody is connected again.
//
// It has no clock.
type view struct {
	services map[key]*service
	// total is how many instances there are, most how many there may be.
	total, most int
	// changed are services of which something changed since take.
	changed map[key]bool
}

// service is what there is of one.
type service struct {
	have map[string]*entry
	// held are those that the server has forgotten, as far as can be known, and that stay for a
	// while.
	held map[string]*held
	// bad are reasons why an instance can't be read. What it was before stays.
	bad map[string]string
	// left are how many are beyond the limit, protected: how many the server says to be healthy
	// whether they are or not; refused: why it doesn't tell.
	left, protected int
	refused         string
}

// entry is an instance, and what was made of it.
type entry struct {
	*instance
	made  *mapped
	times float64
}

type held struct {
	*entry
	// since is when a server first lacked it; zero: not since it was away.
	since time.Time
}

func newView(most int) *view {
	return &view{services: map[key]*service{}, most: most, changed: map[key]bool{}}
}

func (v *view) empty() bool { return v.total == 0 }

func (v *view) service(k key) *service {
	s := v.services[k]
	if s == nil {
		s = &service{have: map[string]*entry{}, held: map[string]*held{}, bad: map[string]string{}}
		v.services[k] = s
	}
	return s
}

// mostBad is how many instances of a service that can't be read, and never could, are told of.
const mostBad = 100

// put takes all that the server has of a service. What is lacking goes; but if it is the first
// answer on a connection, it stays for a while.
func (v *view) put(k key, h *hosted, first bool, now time.Time) {
	s := v.service(k)
	bad, protected := make(map[string]string, len(h.broken)), 0
	if h.protected {
		protected = len(h.instances)
	}
	there := make(map[string]bool, len(h.instances))
	left := h.left
	for _, i := range h.instances {
		id := i.id()
		there[id] = true
		was := s.have[id]
		if old := s.held[id]; old != nil {
			was = old.entry
			delete(s.held, id)
			v.changed[k] = true
		}
		switch {
		case was == nil && v.total >= v.most:
			left++
			continue
		case was == nil:
			v.total++
		case was.same(i):
			s.have[id] = was
			continue
		}
		s.have[id], v.changed[k] = &entry{instance: i}, true
	}
	for _, b := range h.broken {
		if s.have[b.id] == nil && s.held[b.id] == nil && len(bad) >= mostBad {
			left++
			continue
		}
		bad[b.id] = b.why
		if old := s.held[b.id]; old != nil {
			s.have[b.id] = old.entry
			delete(s.held, b.id)
		}
	}
	for id, r := range s.have {
		if there[id] || bad[id] != "" || h.nameless || h.left > 0 { // it may be the one that can't be read
			continue
		}
		delete(s.have, id)
		if v.changed[k] = true; first {
			s.held[id] = &held{r, now}
		} else {
			v.total--
		}
	}
	if s.left != left || s.protected != protected || s.refused != "" || len(bad)+len(s.bad) > 0 {
		v.changed[k] = true
	}
	s.bad, s.left, s.protected, s.refused = bad, left, protected, ""
}

// refuse notes that the server doesn't tell of a service. What it was before stays.
func (v *view) refuse(k key, why string) {
	if s := v.service(k); s.refused != why {
		s.refused, v.changed[k] = why, true
	}
}

// gone takes out a service that isn't there any more.
func (v *view) gone(k key) {
	if s := v.services[k]; s != nil {
		v.total -= len(s.have) + len(s.held)
		delete(v.services, k)
		v.changed[k] = true
	}
}

// away notes that no server tells of a namespace: how long something has been missing counts from
// when one does again.
func (v *view) away(namespace string) {
	for k, s := range v.services {
		if k.namespace == namespace {
			for _, h := range s.held {
				h.since = time.Time{}
			}
		}
	}
}

// expire takes out what has been missing for too long, of namespaces that a server tells of.
func (v *view) expire(now time.Time, keep time.Duration, told func(namespace string) bool) {
	for k, s := range v.services {
		if len(s.held) == 0 || !told(k.namespace) {
			continue
		}
		for id, h := range s.held {
			if h.since.IsZero() {
				h.since = now
			}
			if now.Sub(h.since) >= keep {
				delete(s.held, id)
				v.total--
				v.changed[k] = true
			}
		}
	}
}

// drain returns the services that changed since it was asked last.
func (v *view) drain() map[key]bool {
	out := v.changed
	v.changed = map[key]bool{}
	return out
}
