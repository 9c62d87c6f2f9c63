package gateway

import (
	"slices"
	"strings"
)

// turns are Gateways that are waiting to be looked at: namespaces take turns, so that one with
// thousands of Gateways doesn't keep the others waiting.
type turns struct {
	// waiting are the names in each namespace, in the order in which they came.
	waiting map[string][]string
	// there are all keys; order the namespaces, whose turn is next first.
	there map[string]bool
	order []string
}

func newTurns() *turns { return &turns{waiting: map[string][]string{}, there: map[string]bool{}} }

// add has a Gateway, NAMESPACE/NAME, wait for its turn, once.
func (t *turns) add(key string) {
	if t.there[key] {
		return
	}
	t.there[key] = true
	namespace, _, _ := strings.Cut(key, "/")
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], key)
}

// next takes the one whose turn it is; ok: there is one.
func (t *turns) next() (key string, ok bool) {
	if len(t.order) == 0 {
		return "", false
	}
	namespace := t.order[0]
	t.order = slices.Delete(t.order, 0, 1)
	list := t.waiting[namespace]
	key = list[0]
	delete(t.there, key)
	if list = list[1:]; len(list) > 0 {
		t.waiting[namespace] = list
		t.order = append(t.order, namespace)
	} else {
		delete(t.waiting, namespace)
	}
	return key, true
}
