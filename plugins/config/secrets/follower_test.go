package secrets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// following follows objects of an API server, in bounds, until the test ends.
func following(t *testing.T, a *api, b bounds) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	f := newFollower(ctx, &running, a.client(t), b, func(secrets.Object) {}, func(string, error) {})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return f
}

// few are bounds that are soon reached.
var few = bounds{names: 3, single: 5, wide: 2, poll: 10 * time.Millisecond, polls: 1000, again: 10 * time.Millisecond}

func secret(namespace, name string) secrets.Object {
	return secrets.Object{Kind: secrets.Secret, Namespace: namespace, Name: name}
}

// several are names that are no object's unless one is made.
func several(namespace string, from, to int) (all []secrets.Object) {
	for i := from; i < to; i++ {
		all = append(all, secret(namespace, fmt.Sprintf("n%d", i)))
	}
	return all
}

// says waits until a value of an object is known; empty: that there is none.
func says(t *testing.T, f *follower, o secrets.Object, value string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s is %q", o, value), func() error {
		content, absent, known := f.says(o)
		if !known || string(content.Data["tls.crt"]) != value || (absent == none(o)) != (value == "") {
			return fmt.Errorf("it is %q, %q, known: %v", content.Data["tls.crt"], absent, known)
		}
		return nil
	})
}

// watches waits until the API server has so many.
func watches(t *testing.T, a *api, single, wide int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%d watches of one object and %d of namespaces", single, wide), func() error {
		if s, w, _ := a.asked(); s != single || w != wide {
			return errors.New(a.String())
		}
		return nil
	})
}

// Beyond some names one watch of the namespace's metadata takes the place of all others, and only
// what is asked for is read: objects come, change, go and come back as ever.
func TestManyNames(t *testing.T) {
	a := newAPI(t)
	f := following(t, a, few)
	a.put("secrets", "edge", "n0", "zero")
	a.put("secrets", "edge", "n7", "seven")
	for i := range 50 {
		a.put("secrets", "edge", fmt.Sprintf("nobody-asks-%d", i), "x")
	}
	f.want(several("edge", 0, 3)...)
	says(t, f, secret("edge", "n0"), "zero")
	watches(t, a, 3, 0)
	f.want(several("edge", 3, 200)...)
	watches(t, a, 0, 1)
	says(t, f, secret("edge", "n7"), "seven")
	says(t, f, secret("edge", "n0"), "zero")
	for _, o := range several("edge", 100, 200) {
		says(t, f, o, "")
	}
	if _, _, reads := a.asked(); reads != 1 {
		t.Errorf("%s: what has its watch is known, and what is not there needs none", a)
	}
	for i, value := range []string{"changed", "", "back", "changed again"} {
		a.put("secrets", "edge", "nobody-asks-1", value)
		a.put("secrets", "edge", "n7", value)
		says(t, f, secret("edge", "n7"), value)
		a.put("secrets", "edge", "n150", value)
		says(t, f, secret("edge", "n150"), value)
		if _, _, reads := a.asked(); reads > 1+2*(i+1) {
			t.Errorf("after %d changes of two objects: %s", i+1, a)
		}
	}
	// One that is asked for later is known from the same watch.
	f.want(secret("edge", "nobody-asks-2"), secret("edge", "never"))
	says(t, f, secret("edge", "nobody-asks-2"), "x")
	says(t, f, secret("edge", "never"), "")
	watches(t, a, 0, 1)
	// A neighbour has its own.
	a.put("secrets", "shop", "web", "one")
	f.want(secret("shop", "web"))
	says(t, f, secret("shop", "web"), "one")
	a.put("secrets", "shop", "web", "two")
	says(t, f, secret("shop", "web"), "two")
	for _, o := range append(several("edge", 0, 200), secret("edge", "nobody-asks-2"), secret("edge", "never"), secret("shop", "web")) {
		f.drop(o)
	}
	watches(t, a, 0, 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.objects) + len(f.spaces) + f.singles[secrets.Secret] + f.wides[secrets.Secret]; n > 0 {
		t.Errorf("%d things are kept for nobody", n)
	}
}

// What may not be watched as a namespace is read again and again, until it may be.
func TestMetadataIsForbidden(t *testing.T) {
	a := newAPI(t)
	a.deny("secrets/edge", true)
	f := following(t, a, few)
	a.put("secrets", "edge", "n7", "seven")
	f.want(several("edge", 0, 10)...)
	says(t, f, secret("edge", "n7"), "seven")
	says(t, f, secret("edge", "n8"), "")
	a.put("secrets", "edge", "n8", "came")
	says(t, f, secret("edge", "n8"), "came")
	a.put("secrets", "edge", "n7", "")
	says(t, f, secret("edge", "n7"), "")
	watches(t, a, 0, 0)
	a.deny("secrets/edge", false)
	watches(t, a, 0, 1)
	a.put("secrets", "edge", "n7", "back")
	says(t, f, secret("edge", "n7"), "back")
	wait.For(t, "nothing is polled any more", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, w := range f.objects {
			if w.polled {
				return errors.New(w.object.String())
			}
		}
		return nil
	})
	// A right that goes while it is watched.
	a.deny("secrets/edge", true)
	watches(t, a, 0, 0)
	a.put("secrets", "edge", "n7", "seen all the same")
	says(t, f, secret("edge", "n7"), "seen all the same")
}

// However many namespaces are named, watches are bounded: what is beyond is read again and again,
// and has a watch of its own when it is asked for again and there is room.
func TestManyNamespaces(t *testing.T) {
	a := newAPI(t)
	f := following(t, a, few)
	var all []secrets.Object
	for i := range 40 {
		all = append(all, secret(fmt.Sprintf("ns%d", i), "web"))
		a.put("secrets", fmt.Sprintf("ns%d", i), "web", "first")
	}
	f.want(all...)
	for _, o := range all {
		says(t, f, o, "first")
	}
	watches(t, a, few.single, 0)
	for i, o := range all {
		a.put("secrets", o.Namespace, "web", fmt.Sprintf("second%d", i))
	}
	for i, o := range all {
		says(t, f, o, fmt.Sprintf("second%d", i))
	}
	for _, o := range all[:39] {
		f.drop(o)
	}
	f.drop(all[39])
	f.want(all[39])
	watches(t, a, 1, 0)
	// Of namespaces, too.
	for i := range few.wide + 2 {
		f.want(several(fmt.Sprintf("wide%d", i), 0, few.names+1)...)
	}
	watches(t, a, 1, few.wide)
	for i := range few.wide + 2 {
		o := secret(fmt.Sprintf("wide%d", i), "n1")
		says(t, f, o, "")
		a.put("secrets", o.Namespace, o.Name, "came")
		says(t, f, o, "came")
	}
}
