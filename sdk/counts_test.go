package sdk

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// measured is a Publisher that takes what is reported.
type measured struct {
	Publisher
	all chan []*pb.Sample
}

func (m measured) measure(all []*pb.Sample) { m.all <- all }

// TestCounts: counters are reported as they change, once in a while however often that is, and only
// so many.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counts
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := measured{all: make(chan []*pb.Sample, 100)}, make(chan struct{})
		go func() { defer close(ended); c.Report(ctx, out) }()
		c.Add("done_total", "what", "a")
		first := <-out.all
		if len(first) != 1 || first[0].Value != 1 || first[0].Labels["what"] != "a" || !first[0].Counter {
			t.Errorf("%v", first)
		}
		began := time.Now()
		for i := range 1000 {
			c.Add("done_total", "what", "a")
			c.Add("many_total", "what", fmt.Sprint(i))
		}
		next := <-out.all
		if len(next) != mostCounts || time.Since(began) < reportEvery {
			t.Errorf("%d counters after %v", len(next), time.Since(began))
		}
		for _, s := range next {
			if s.Name == "done_total" && s.Value < 2 {
				t.Errorf("%v", s)
			}
		}
		if first[0].Value != 1 {
			t.Error("what was reported has changed")
		}
		time.Sleep(10 * reportEvery) // in the bubble
		for len(out.all) > 0 {
			<-out.all
		}
		synctest.Wait()
		if len(out.all) != 0 {
			t.Error("what has not changed is reported again")
		}
		cancel()
		<-ended
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&Counts{}).Report(ctx, nil) // nobody takes it
}
