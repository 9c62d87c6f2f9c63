package sdk

import (
	"context"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostCounts is how many counters a plugin has: the core takes no more.
const mostCounts = 200

// reportEvery is how often counters are reported that have changed.
const reportEvery = time.Second

// Counts are counters that a plugin reports, which the core's /metrics shows as plugin_NAME with
// the label plugin. The zero value is ready; its methods may be called by several goroutines.
type Counts struct {
	mu  sync.Mutex
	all map[string]*pb.Sample
	// changed wakes Report.
	changed chan struct{}
	dirty   bool
}

// Add adds one to a counter, whose name ends in _total, with labels and their values in turns. What
// outsiders say must not be among them, unless it is one of a few words: the 201st counter is not
// kept.
func (c *Counts) Add(name string, labels ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := name
	for _, l := range labels {
		key += "\x00" + l
	}
	s := c.all[key]
	if s == nil {
		if len(c.all) >= mostCounts {
			return
		}
		s = &pb.Sample{Name: name, Counter: true, Labels: map[string]string{}}
		for i := 0; i+1 < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		if c.all == nil {
			c.all = map[string]*pb.Sample{}
		}
		c.all[key] = s
	}
	s.Value++
	c.dirty = true
	select {
	case c.wake() <- struct{}{}:
	default:
	}
}

// wake returns the channel that wakes Report; mu is held.
func (c *Counts) wake() chan struct{} {
	if c.changed == nil {
		c.changed = make(chan struct{}, 1)
	}
	return c.changed
}

// Report reports the counters as they change, given the Publisher of a plugin's Run, until ctx
// ends. With another Publisher nothing is reported.
func (c *Counts) Report(ctx context.Context, out Publisher) {
	p, ok := out.(interface{ measure([]*pb.Sample) })
	if !ok {
		<-ctx.Done()
		return
	}
	c.mu.Lock()
	wake := c.wake()
	c.mu.Unlock()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if all := c.take(); len(all) > 0 {
			p.measure(all)
		}
		pause.Reset(reportEvery)
	}
}

// take returns the counters, if they have changed.
func (c *Counts) take() []*pb.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	c.dirty = false
	all := make([]*pb.Sample, 0, len(c.all))
	for _, s := range c.all {
		all = append(all, &pb.Sample{Name: s.Name, Counter: true, Labels: s.Labels, Value: s.Value})
	}
	return all
}
