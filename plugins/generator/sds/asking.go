package sds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// asking is what is asked for an account, by all views of its proxies: a row for each object, so
// that no list makes one too large, and as many as Config.MaxObjects says.
type asking struct {
	account secrets.Account
	// objects has how many answers depend on each, rights how many on what the account may do.
	objects map[secrets.Object]int
	rights  int
	// waiting are names that there was no room for; room: some was made since.
	waiting map[waiting]bool
	room    bool
}

// waiting is a name that a view wants.
type waiting struct {
	view uint64
	name string
}

// fits says why objects can't be asked for in addition to those that are, if so.
func (e *engine) fits(account secrets.Account, objects []secrets.Object) error {
	if !e.config.Kubernetes {
		return nil
	}
	held, more := 0, len(objects)
	if a := e.asking[account]; a != nil {
		held = len(a.objects)
		for _, o := range objects {
			if a.objects[o] > 0 {
				more--
			}
		}
	}
	if more > 0 && held+more > e.config.MaxObjects {
		return fmt.Errorf("proxies of %s ask for more than %d Secrets and ConfigMaps (maxObjects): what they asked for first is served",
			account.Key(), e.config.MaxObjects)
	}
	return nil
}

// hold asks for what an answer depends on, and for what the one before did no longer. Either may be
// nil.
func (e *engine) hold(of waiting, before, now *answer) {
	if !e.config.Kubernetes {
		return
	}
	if now != nil && (now.rights || now.over || len(now.objects) > 0) {
		e.take(of, now)
	}
	if before != nil && before.by != nil {
		e.release(of, before, now)
	}
}

func (e *engine) take(of waiting, now *answer) {
	account := e.account(e.views[of.view].caller)
	a := e.asking[account]
	if a == nil {
		a = &asking{account: account, objects: map[secrets.Object]int{}, waiting: map[waiting]bool{}}
		e.asking[account] = a
	}
	now.by = a
	if now.over {
		a.waiting[of] = true
	}
	if now.rights {
		if a.rights++; a.rights == 1 {
			e.requests.put(secrets.Request{Account: account})
		}
	}
	for _, o := range now.objects {
		if a.objects[o]++; a.objects[o] == 1 {
			e.requests.put(secrets.Request{Account: account, Objects: []secrets.Object{o}})
		}
	}
}

func (e *engine) release(of waiting, before, now *answer) {
	a := before.by
	if before.over && (now == nil || now.by != a || !now.over) {
		delete(a.waiting, of)
	}
	if before.rights {
		if a.rights--; a.rights == 0 {
			e.requests.remove(secrets.Request{Account: a.account})
		}
	}
	for _, o := range before.objects {
		if a.objects[o]--; a.objects[o] == 0 {
			delete(a.objects, o)
			a.room = true
			e.requests.remove(secrets.Request{Account: a.account, Objects: []secrets.Object{o}})
		}
	}
	if a.rights == 0 && len(a.objects)+len(a.waiting) == 0 {
		delete(e.asking, a.account)
	}
}

// roomFor returns names that wait for room, where some was made: for each account the first in
// order, no more than there may be room for.
func (e *engine) roomFor() []waiting {
	var out []waiting
	for _, a := range e.asking {
		if !a.room {
			continue
		}
		a.room = false
		all := slices.SortedFunc(maps.Keys(a.waiting), waiting.compare)
		out = append(out, all[:min(len(all), max(0, e.config.MaxObjects-len(a.objects)))]...)
	}
	slices.SortFunc(out, waiting.compare)
	return out
}

func (w waiting) compare(other waiting) int {
	return cmp.Or(cmp.Compare(w.name, other.name), cmp.Compare(w.view, other.view))
}
