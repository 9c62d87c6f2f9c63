package secrets

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// linger is how long what nobody asks for any more stays known: proxies come back.
	linger = time.Minute
	// syncWithin is how long the first answers are waited for.
	syncWithin = 10 * time.Second
)

type source struct {
	config Config
	client *kube.Client
	bounds bounds
}

// run is what is asked for, and what was answered.
type run struct {
	source  *source
	ctx     context.Context
	out     sdk.Publisher
	client  *kube.Client
	running sync.WaitGroup
	said    kube.LogLimiter
	follow  *follower
	objects map[secrets.Object]bool
	rights  map[secrets.Account]*right
	// unwanted is since when nobody asks for an object any more.
	unwanted map[secrets.Object]time.Time
	// requests are rows as they were read.
	requests map[*sdk.Row]secrets.Request
	changes  *kube.Changes[secrets.Object]
	// verdicts are taken one by one; each has room, so that nobody waits to be heard.
	verdicts chan verdict
	synced   bool
	// until is when the first answers are waited for no longer.
	until time.Time
}

// Run publishes what is asked for, and follows it, until ctx ends. An API server that is away
// changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	s.config.Report(ctx, out)
	ctx, cancel := context.WithCancel(ctx)
	r := &run{
		source: s, ctx: ctx, out: out, objects: map[secrets.Object]bool{}, rights: map[secrets.Account]*right{},
		unwanted: map[secrets.Object]time.Time{},
		changes:  kube.NewChanges[secrets.Object](), verdicts: make(chan verdict), until: time.Now().Add(syncWithin),
	}
	defer r.running.Wait()
	defer cancel()
	r.client = s.config.Reach(ctx, &s.config.Access, s.client, agent, func(err error) { r.failed("kubeconfig", err) })
	if r.client == nil {
		return nil
	}
	first, newer, err := kube.FirstState(ctx, out)
	if err != nil {
		return nil
	}
	r.follow = newFollower(ctx, &r.running, r.client, s.bounds, func(o secrets.Object) { r.changes.Add(o) }, r.failed)
	return r.loop(first, newer)
}

func (r *run) failed(what string, err error) {
	if r.said.Allow(what, err, time.Now()) {
		r.out.Log(sdk.Warn,
			"the API server can't be asked for what proxies want; what is known stays, and it is tried again",
			"what", what, "error", err.Error())
	}
}

func (r *run) loop(s *state.State, newer <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		if s != nil {
			r.want(s, now)
		}
		if err := r.tell(now); err != nil {
			return err
		}
		timer.Reset(time.Until(r.due(now)))
		s = nil
		select {
		case <-r.ctx.Done():
			return nil
		case <-newer:
			s, newer = r.out.State()
		case <-r.changes.Some():
		case v := <-r.verdicts:
			if err := r.judge(v); err != nil {
				return err
			}
		case <-timer.C:
		}
	}
}

// want begins and ends to follow what is asked for.
func (r *run) want(s *state.State, now time.Time) {
	objects, accounts := map[secrets.Object]bool{}, map[secrets.Account]bool{}
	requests := map[*sdk.Row]secrets.Request{}
	for _, table := range []string{secrets.Requests, secrets.Named} {
		for _, row := range s.Table(table).All() {
			q, read := r.requests[row]
			if !read {
				q, _ = secrets.DecodeRequest(row) // generator/sds and config/gatewayapi alone publish them
			}
			requests[row] = q
			if a := q.Account; len(q.Objects) == 0 && a.Name != "" && a.Cluster == r.source.config.Cluster {
				accounts[a] = true
			}
			for _, o := range q.Objects {
				if o.Cluster == r.source.config.Cluster {
					objects[o] = true
				}
			}
		}
	}
	r.requests = requests
	var more []secrets.Object
	for o := range objects {
		if delete(r.unwanted, o); !r.objects[o] {
			r.objects[o] = true
			more = append(more, o)
		}
	}
	r.follow.want(more...)
	for a := range accounts {
		if r.rights[a] == nil {
			r.rights[a] = &right{account: a, due: now}
		}
	}
	for o := range r.objects {
		if _, noted := r.unwanted[o]; !objects[o] && !noted {
			r.unwanted[o] = now
		}
	}
	for a, of := range r.rights {
		mark(&of.unwanted, accounts[a], now)
	}
}

// mark notes since when something is not wanted.
func mark(since *time.Time, wanted bool, now time.Time) {
	switch {
	case wanted:
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
}

func over(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= linger }

// tell publishes what has changed, asks what is due, and forgets what nobody has wanted for a
// while.
func (r *run) tell(now time.Time) error {
	rows := map[string]*changed{secrets.SecretTable: {}, secrets.ConfigMapTable: {}, secrets.Absences: {}, secrets.Rights: {}}
	for o := range r.changes.Drain() {
		switch content, absent, known := r.follow.says(o); {
		case !known:
		case absent != "":
			rows[secrets.Absences].upsert(&sdk.Row{Key: o.AbsenceKey(), Payload: secrets.Absence{Reason: absent}.Encode()})
			rows[o.Table()].delete(o.Key())
		default:
			rows[o.Table()].upsert(&sdk.Row{Key: o.Key(), Source: "k8s://" + o.Kind + "/" + o.Namespace + "/" + o.Name, Payload: content.Encode()})
			rows[secrets.Absences].delete(o.AbsenceKey())
		}
	}
	for o, since := range r.unwanted {
		if over(since, now) {
			r.follow.drop(o)
			delete(r.objects, o)
			delete(r.unwanted, o)
			rows[o.Table()].delete(o.Key())
			rows[secrets.Absences].delete(o.AbsenceKey())
		}
	}
	for a, of := range r.rights {
		switch {
		case over(of.unwanted, now):
			delete(r.rights, a)
			rows[secrets.Rights].delete(a.Key())
		case !of.asked && !of.due.After(now):
			of.asked = true
			r.running.Go(func() {
				select {
				case r.verdicts <- ask(r.ctx, r.client, a):
				case <-r.ctx.Done():
				}
			})
		}
	}
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if c := rows[table]; len(c.upserts)+len(c.deletes) > 0 {
			if err := r.out.Update(table, c.upserts, c.deletes); err != nil {
				return err
			}
		}
	}
	return r.sync(now)
}

type changed struct {
	upserts []*sdk.Row
	deletes []string
}

func (c *changed) upsert(row *sdk.Row) { c.upserts = append(c.upserts, row) }
func (c *changed) delete(key string)   { c.deletes = append(c.deletes, key) }

// sync says that all is there, once it is, or was waited for long enough.
func (r *run) sync(now time.Time) error {
	if r.synced || now.Before(r.until) && !r.complete() {
		return nil
	}
	r.synced = true
	return r.out.Synced()
}

func (r *run) complete() bool {
	if !r.follow.complete() {
		return false
	}
	for _, of := range r.rights {
		if !of.known {
			return false
		}
	}
	return true
}

// judge takes a verdict.
func (r *run) judge(v verdict) error {
	of := r.rights[v.account]
	if v.err != nil {
		r.failed("SubjectAccessReview of "+v.account.Key(), v.err)
	}
	if of == nil || !of.note(v, time.Now()) {
		return nil
	}
	return r.out.Update(secrets.Rights, []*sdk.Row{{Key: v.account.Key(), Payload: of.row().Encode()}}, nil)
}

// due is when there is something to do again.
func (r *run) due(now time.Time) time.Time {
	next := now.Add(time.Hour)
	if !r.synced {
		next = r.until
	}
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, since := range r.unwanted {
		sooner(since.Add(linger))
	}
	for _, of := range r.rights {
		if !of.unwanted.IsZero() {
			sooner(of.unwanted.Add(linger))
		}
		if !of.asked {
			sooner(of.due)
		}
	}
	return next
}
