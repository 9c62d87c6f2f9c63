// Package polling is how config sources keep fresh what they fetch from elsewhere: schedule.go
// decides what is due, this file runs it.
package polling

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Source fetches what rows ask for and publishes it. W says how something is got.
type Source[W comparable] struct {
	Pace
	// Table is where rows go.
	Table string
	// Name is the field of log lines that has the key of what is fetched, Failed and Fetched are
	// their texts.
	Name, Failed, Fetched string
	// Wants returns what is to be fetched, by the key of its row.
	Wants func(s *state.State) map[string]W
	// Owners says who wants what is to be fetched, by the key of its row: they take turns;
	// optional.
	Owners func(s *state.State) map[string][]string
	// Given returns rows that need no fetching; optional. Their keys are others than those of
	// Wants. The error says what else there would be; it is logged once.
	Given func(s *state.State) ([]*sdk.Row, error)
	// Fetch gets one; the error says why it can't be had.
	Fetch func(ctx context.Context, w W) (string, error)
	// Row is the row of what was fetched.
	Row func(key string, w W, found string) *sdk.Row
	// Patience is how long Synced waits until everything that is wanted at first was fetched, or
	// could not be: until then rows of an earlier run stay. 0: it doesn't wait.
	Patience time.Duration
}

// result is what a fetch brought.
type result[W comparable] struct {
	key   string
	want  W
	found string
	err   error
}

// Run fetches what rows ask for and keeps it fresh, until ctx ends. Nobody waits for what is
// fetched first, but for Synced, for as long as Patience says. What can't be fetched stays what it
// was, and is tried again.
func (s *Source[W]) Run(ctx context.Context, out sdk.Publisher) error {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	synced := sync.OnceValue(out.Synced)
	var until <-chan time.Time
	if s.Patience > 0 {
		waiting := time.NewTimer(s.Patience)
		defer waiting.Stop()
		until = waiting.C
	} else if err := synced(); err != nil {
		return err
	}
	plan, results := NewSchedule[W](s.Pace), make(chan result[W])
	g := given{rows: map[string]*sdk.Row{}}
	for {
		rows, newer := out.State()
		gone := plan.Adopt(s.Wants(rows), time.Now())
		if s.Owners != nil {
			plan.Own(s.Owners(rows))
		}
		var news []*sdk.Row
		if s.Given != nil {
			now, err := s.Given(rows)
			g.complain(err, out)
			var left []string
			news, left = g.differ(now)
			gone = append(gone, left...)
		}
		if len(news)+len(gone) > 0 {
			if err := out.Update(s.Table, news, gone); err != nil {
				return err
			}
		}
		for key, w := range plan.Take(time.Now()) {
			fetches.Go(func() {
				found, err := s.Fetch(ctx, w)
				select {
				case results <- result[W]{key, w, found, err}:
				case <-ctx.Done():
				}
			})
		}
		if s.Patience > 0 && rows.Revision().Epoch > 0 && plan.Tried() {
			if err := synced(); err != nil {
				return err
			}
		}
		timer := alarm(plan)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-until:
			if err := synced(); err != nil {
				return err
			}
		case <-newer:
		case <-timer.C:
		case r := <-results:
			if err := s.publish(plan, r, out); err != nil {
				return err
			}
		}
		timer.Stop()
	}
}

// given is what needs no fetching.
type given struct {
	rows map[string]*sdk.Row
	said string
}

// complain logs what is wrong, once.
func (g *given) complain(err error, out sdk.Publisher) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != g.said {
		out.Log(sdk.Warn, text)
	}
	g.said = text
}

// differ takes the rows that there are now, and returns those that are new or other, and the keys
// of those that are gone.
func (g *given) differ(now []*sdk.Row) (news []*sdk.Row, gone []string) {
	keys := map[string]bool{}
	for _, r := range now {
		keys[r.Key] = true
		if have := g.rows[r.Key]; have == nil || !bytes.Equal(have.Payload, r.Payload) {
			g.rows[r.Key] = r
			news = append(news, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.rows)) {
		if !keys[key] {
			delete(g.rows, key)
			gone = append(gone, key)
		}
	}
	return news, gone
}

// idle is how long nothing is looked at where nothing is wanted.
const idle = time.Hour

func alarm[W comparable](plan *Schedule[W]) *time.Timer {
	at, ok := plan.Next()
	if !ok {
		return time.NewTimer(idle)
	}
	return time.NewTimer(time.Until(at))
}

// publish publishes what a fetch brought, or says why it brought nothing.
func (s *Source[W]) publish(plan *Schedule[W], r result[W], out sdk.Publisher) error {
	if r.err != nil {
		if wait := plan.Failed(r.key, r.want, time.Now()); wait > 0 {
			out.Log(sdk.Warn, s.Failed, s.Name, r.key, "error", r.err.Error(), "again", wait.String())
		}
		return nil
	}
	if !plan.Fetched(r.key, r.want, r.found, time.Now()) {
		return nil
	}
	out.Log(sdk.Info, s.Fetched, s.Name, r.key)
	return out.Update(s.Table, []*sdk.Row{s.Row(r.key, r.want, r.found)}, nil)
}
