package istio

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// The law: whatever happened before, what an engine has reported is what a fresh one makes of the
// same rows, whether or not namespaces share what they see; and it reports nothing that is as it
// was.

var (
	lawSeed      = flag.Uint64("law.seed", 1, "seed of the first history")
	lawHistories = flag.Int("law.histories", lawHistoriesOften, "how many histories")
)

const stepsOfHistory = 100

func TestIncrementalIsAsFromScratch(t *testing.T) {
	p := newPool(t)
	histories := *lawHistories
	if testing.Short() {
		histories = min(histories, 2)
	}
	for i := range uint64(histories) {
		seed := *lawSeed + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			events, err := history(p, seed)
			if err == nil {
				return
			}
			t.Errorf("after %d events of the history with -law.seed %d -law.histories 1: %v", len(events), seed, err)
			events, err = shortest(events, time.Now().Add(time.Minute))
			t.Errorf("as few as these will do: %v", err)
			for _, ev := range events {
				t.Logf("  %s", ev)
			}
		})
	}
}

// history lets random events happen, up to the first after which the law is broken.
func history(p *pool, seed uint64) ([]event, error) {
	a, w := newAuthor(p, rand.New(rand.NewPCG(seed, 7))), newPlay()
	events := []event{a.adopt()}
	for len(events) <= stepsOfHistory {
		if err := w.step(events[len(events)-1]); err != nil {
			return events, err
		}
		events = append(events, a.event())
	}
	return events, nil
}

func (p *play) step(ev event) error {
	if err := p.happen(ev); err != nil {
		return err
	}
	return p.compare()
}

// broken replays events, up to the one after which the law is broken; nil if it holds.
func broken(events []event) ([]event, error) {
	w := newPlay()
	for i, ev := range events {
		if ev.proxy == nil && ev.changes == nil && w.attached[ev.connection] == nil {
			continue // it never came
		}
		if err := w.step(ev); err != nil {
			return events[:i+1], err
		}
	}
	return nil, nil
}

// shortest leaves out events, and rows of events, as long as the rest breaks the law, until the
// deadline.
func shortest(events []event, deadline time.Time) ([]event, error) {
	events, err := broken(events)
	for size := max(1, len(events)/2); size >= 1 && time.Now().Before(deadline); {
		smaller := false
		for at := 0; at+size <= len(events) && time.Now().Before(deadline); {
			without := append(append([]event{}, events[:at]...), events[at+size:]...)
			if rest, why := broken(without); why != nil {
				events, err, smaller = rest, why, true
			} else {
				at += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return fewerRows(events, err, deadline)
}

// fewerRows leaves out rows one by one.
func fewerRows(events []event, err error, deadline time.Time) ([]event, error) {
	for i := 0; i < len(events); i++ {
		parts := rowsOfEvent(events[i])
		for at := 0; at < len(parts) && time.Now().Before(deadline); {
			rest := append(append([]*pb.TableRows{}, parts[:at]...), parts[at+1:]...)
			changed := append([]event{}, events...)
			changed[i].changes = rest
			if again, why := broken(changed); why != nil && len(again) > i {
				events, err, parts = again, why, rest
			} else {
				at++
			}
		}
	}
	return events, err
}

// rowsOfEvent are its changes, each with one row.
func rowsOfEvent(ev event) []*pb.TableRows {
	var out []*pb.TableRows
	for _, c := range ev.changes {
		for _, r := range c.Upserts {
			out = append(out, &pb.TableRows{Table: c.Table, Upserts: []*pb.Row{r}})
		}
		for _, key := range c.Deletes {
			out = append(out, &pb.TableRows{Table: c.Table, Deletes: []string{key}})
		}
	}
	return out
}

// TestOvertakingEndsWhereCommitsDo runs both at once; the race detector watches.
func TestOvertakingEndsWhereCommitsDo(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.get(1, encode.EndpointType, webCluster)
	base := w.builder.State()
	done := make(chan error)
	go func() {
		defer close(done)
		for i := range 100 {
			row := webEndpoint(fmt.Sprintf("10.1.1.%d", i))
			change := state.With(base, state.Revision{Number: 1000 + uint64(i)}, []*pb.TableRows{{Table: state.Endpoints, Upserts: []*pb.Row{row}}})
			if err := w.e.Overtake(context.Background(), change, w.out); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 100 {
		w.commit(rows(state.Endpoints, webEndpoint(fmt.Sprintf("10.1.2.%d", i))))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := addresses(t, w.out.resources(w.out.placed[1][encode.EndpointType])[webCluster]); len(got) != 201 {
		t.Errorf("%d endpoints, want all 201", len(got))
	}
}
