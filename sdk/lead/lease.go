package lead

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// errTaken is that somebody else holds the Lease.
var errTaken = errors.New("another replica holds the Lease")

// moment is how times are written.
// Source: k8s.io/apimachinery, MicroTime.
const moment = "2006-01-02T15:04:05.000000Z07:00"

// lease is a Lease as this replica knows it. One goroutine uses it at a time.
type lease struct {
	Election
	identity string

	// kept is the object as it was last read or written, holder who has it then, for how long; seen
	// is since when it has not changed, by this process' clock.
	kept   fields
	holder string
	lasts  time.Duration
	spec   string
	seen   time.Time
	// renewed is before it was last written.
	renewed time.Time

	// troubles are how often in a row it could not be read or written, said what was last said of
	// that, and again from when on it may be said again.
	troubles int
	said     string
	again    time.Time
}

// fields are those of an object; what nobody here knows stays as it is.
type fields map[string]json.RawMessage

// set puts a value in that can be encoded.
func (f fields) set(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	f[name] = text
}

// hold takes the Lease, or renews it. The error is errTaken while somebody else holds it.
func (l *lease) hold(ctx context.Context) error {
	began := time.Now()
	if l.holder == l.identity { // it is mostly as it was
		if err := l.write(ctx, l.identity, began); err == nil || sdk.CodeOf(err) != sdk.StoreConflict && sdk.CodeOf(err) != sdk.StoreNotFound {
			return err
		}
	}
	if err := l.read(ctx); sdk.CodeOf(err) == sdk.StoreNotFound {
		l.kept = nil // who held it may not know yet that it was deleted
	} else if err != nil {
		return err
	}
	if l.holder != "" && l.holder != l.identity && time.Since(l.seen) < l.lasts {
		return errTaken
	}
	err := l.write(ctx, l.identity, began)
	if code := sdk.CodeOf(err); code == sdk.StoreConflict || code == sdk.StoreAlreadyExists { // another one was faster: who?
		if l.read(ctx) == nil && l.holder != l.identity {
			return errTaken
		}
	}
	return err
}

// release gives the Lease up, if it is held.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.Duration/4)
	defer cancel()
	for range 3 { // a renewal that was under way may be in between
		if l.read(ctx) != nil || l.holder != l.identity || l.write(ctx, "", time.Now()) == nil {
			return
		}
	}
}

func (l *lease) read(ctx context.Context) error {
	text, err := l.Objects.Get(ctx, Table, l.Namespace, l.Name)
	if err != nil {
		return l.failed(ctx, err)
	}
	return l.keep(text)
}

// keep takes the Lease as it is now.
func (l *lease) keep(text []byte) error {
	var object fields
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	var spec struct {
		HolderIdentity       string
		LeaseDurationSeconds int64
	}
	if of := object["spec"]; len(of) > 0 {
		if err := json.Unmarshal(of, &spec); err != nil {
			return err
		}
	}
	if l.spec != string(object["spec"]) || l.seen.IsZero() {
		l.spec, l.seen = string(object["spec"]), time.Now()
	}
	l.kept, l.holder, l.troubles, l.said = object, spec.HolderIdentity, 0, ""
	l.lasts = min(time.Duration(min(spec.LeaseDurationSeconds, int64(Longest/time.Second)))*time.Second, Longest)
	return nil
}

// write makes the Lease somebody's, or nobody's, from the version that was read last; one that is
// not there is made.
func (l *lease) write(ctx context.Context, holder string, now time.Time) error {
	object, spec := fields{}, fields{}
	for name, value := range l.kept {
		object[name] = value
	}
	if of := object["spec"]; len(of) > 0 {
		if err := json.Unmarshal(of, &spec); err != nil {
			return err
		}
	}
	seconds := int64((l.Duration + time.Second - 1) / time.Second)
	switch {
	case holder == "":
		delete(spec, "holderIdentity")
		seconds = 1
	case holder != l.holder || l.kept == nil:
		spec.set("holderIdentity", holder)
		spec.set("acquireTime", now.UTC().Format(moment))
		var before int64
		if err := json.Unmarshal(spec["leaseTransitions"], &before); err == nil || l.kept == nil {
			spec.set("leaseTransitions", before+int64(min(len(l.kept), 1)))
		}
	}
	spec.set("leaseDurationSeconds", seconds)
	spec.set("renewTime", now.UTC().Format(moment))
	object.set("spec", spec)
	put := l.Objects.Update
	if l.kept == nil {
		put = l.Objects.Create
		object.set("apiVersion", "coordination.k8s.io/v1")
		object.set("kind", "Lease")
		object.set("metadata", map[string]string{"namespace": l.Namespace, "name": l.Name})
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	text, err = put(ctx, Table, text)
	switch {
	case err != nil && l.kept == nil && sdk.CodeOf(err) == sdk.StoreNotFound: // its namespace is not there
		return l.say(ctx, err)
	case err != nil:
		return l.failed(ctx, err)
	}
	l.renewed = now
	return l.keep(text)
}
