package status

import (
	"context"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// ahead reads the objects of a large change by the page, in the order in which they are written,
// instead of each by itself. What it has may be older than what there is: then the API server says
// that there is a conflict.
type ahead struct {
	table string
	// objects are those that are queued of the page that was read last, by key; last is the key of
	// the last one that it had, next the page that comes then.
	objects    map[string][]byte
	last, next string
	// off: it does not pay, until the queue of large changes is empty.
	off bool
}

// worth is how many objects of a page must be queued.
const worth = page / 5

// of returns an object; nil: it is to be read by itself.
func (a *ahead) of(ctx context.Context, w *writer, table, key string) ([]byte, error) {
	if len(w.work.later) == 0 {
		defer func() { *a = ahead{} }()
	}
	if text := a.objects[key]; text != nil {
		delete(a.objects, key)
		return text, nil
	}
	if a.off || len(w.work.later) < worth || a.table == table && (key <= a.last || a.next == "" && a.last != "") {
		return nil, nil
	}
	if a.table != table {
		*a = ahead{table: table}
	}
	a.objects = map[string][]byte{}
	texts, next, err := w.objects.List(ctx, table, "", sdk.Page{Page: a.next, Limit: page})
	if err != nil {
		a.off = true // it is read by itself, and what is wrong is seen then
		return nil, nil
	}
	a.next = next
	for _, text := range texts {
		o, err := read(text)
		if err != nil {
			return nil, err
		}
		a.last = keyOf(table, o)
		if w.work.queued[a.last] || a.last == key {
			a.objects[a.last] = text
		}
	}
	a.off = len(a.objects) < worth
	text := a.objects[key]
	delete(a.objects, key)
	return text, nil
}

// keyOf is the key of what is said of an object.
func keyOf(table string, o *object) string {
	name := o.meta.Name
	if o.meta.Namespace != "" {
		name = kinds.Key(o.meta.Namespace, o.meta.Name)
	}
	return gatewayapi.StatusKey(table, name)
}
