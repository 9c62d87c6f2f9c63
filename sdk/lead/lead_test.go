package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// memory keeps one Lease. What it refuses it refuses to one candidate alone.
type memory struct {
	mu      sync.Mutex
	lease   *coordination.Lease
	version int
	refused map[string]error
	// looked is how often each has seen it.
	looked map[string]int
}

// client is a candidate's way to it; other calls than an election's panic.
type client struct {
	sdk.Objects
	*memory
	name string
}

func (m *memory) refuse(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[name] = err
}

// holder is who has the Lease; nobody, if it is free or none is there.
func (m *memory) holder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease == nil || m.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *m.lease.Spec.HolderIdentity
}

// put has the Lease be another one, or none, past all candidates.
func (m *memory) put(l *coordination.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	if m.lease = l; l != nil {
		l.ResourceVersion = strconv.Itoa(m.version)
	}
}

func (c *client) use(table string) error {
	if table != Table {
		return fmt.Errorf("asked of %s", table)
	}
	return c.refused[c.name]
}

func (c *client) text() ([]byte, error) { return json.Marshal(c.lease) }

func (c *client) Get(_ context.Context, table, namespace, name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := c.use(table); {
	case err != nil:
		return nil, err
	case c.lease == nil:
		return nil, &sdk.StoreError{Code: sdk.StoreNotFound, Reason: namespace + "/" + name}
	}
	c.looked[c.name]++
	return c.text()
}

func (c *client) Create(_ context.Context, table string, object []byte) ([]byte, error) {
	return c.write(table, object, func(*coordination.Lease) *sdk.StoreError {
		if c.lease != nil {
			return &sdk.StoreError{Code: sdk.StoreAlreadyExists}
		}
		return nil
	})
}

func (c *client) Update(_ context.Context, table string, object []byte) ([]byte, error) {
	return c.write(table, object, func(now *coordination.Lease) *sdk.StoreError {
		switch {
		case c.lease == nil:
			return &sdk.StoreError{Code: sdk.StoreNotFound}
		case now.ResourceVersion != c.lease.ResourceVersion:
			return &sdk.StoreError{Code: sdk.StoreConflict}
		}
		return nil
	})
}

func (c *client) write(table string, object []byte, against func(*coordination.Lease) *sdk.StoreError) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.use(table); err != nil {
		return nil, err
	}
	var now coordination.Lease
	if err := json.Unmarshal(object, &now); err != nil {
		return nil, err
	}
	if err := against(&now); err != nil {
		return nil, err
	}
	c.version++
	now.ResourceVersion = strconv.Itoa(c.version)
	c.lease = &now
	return c.text()
}

// candidates want to lead, over one memory.
type candidates struct {
	*memory
	t       *testing.T
	leading atomic.Int32
	// terms has the name of each that begins to lead.
	terms chan string
	mu    sync.Mutex
	logs  []string
	ends  map[string]context.CancelFunc
	ended sync.WaitGroup
}

func newCandidates(t *testing.T, names ...string) *candidates {
	c := &candidates{
		memory: &memory{refused: map[string]error{}, looked: map[string]int{}}, t: t, terms: make(chan string, 100),
		ends: map[string]context.CancelFunc{},
	}
	for _, n := range names {
		c.add(n)
	}
	t.Cleanup(func() {
		for _, end := range c.ends {
			end()
		}
		c.ended.Wait()
	})
	return c
}

func (c *candidates) election(name string) Election {
	return Election{Objects: &client{memory: c.memory, name: name}, Log: c.log, Namespace: "system", Name: "one", Duration: Shortest}
}

func (c *candidates) log(_ sdk.Level, text string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs = append(c.logs, fmt.Sprint(append([]any{text}, args...)...))
}

// said reports how many lines have a text.
func (c *candidates) said(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.logs {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

func (c *candidates) add(name string) {
	ctx, end := context.WithCancel(context.Background())
	c.ends[name] = end
	c.ended.Go(func() {
		if err := c.election(name).Run(ctx, func(ctx context.Context) error {
			if n := c.leading.Add(1); n != 1 {
				c.t.Errorf("%d lead at once", n)
			}
			c.terms <- name
			<-ctx.Done()
			c.leading.Add(-1)
			return errors.New("what a task says that was ended is not heard")
		}); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	})
}

// looks is how often a candidate has seen the Lease.
func (m *memory) looks(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looked[name]
}

func (c *candidates) until(what string, is func() bool) {
	c.t.Helper()
	tick, deadline := time.NewTicker(10*time.Millisecond), time.Now().Add(time.Minute)
	defer tick.Stop()
	for ; !is(); <-tick.C {
		if time.Now().After(deadline) {
			c.t.Fatal("not after a minute: " + what)
		}
	}
}

// next waits for the next who leads.
func (c *candidates) next() string {
	c.t.Helper()
	select {
	case name := <-c.terms:
		return name
	case <-time.After(time.Minute):
		c.t.Fatal("nobody leads")
		return ""
	}
}

// TestOneLeads: one leads; when it ends, the Lease is free and the next leads.
func TestOneLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCandidates(t, "a", "b", "c")
		seen := map[string]bool{}
		for range 3 {
			name := c.next()
			if seen[name] {
				t.Errorf("%s leads again", name)
			}
			seen[name] = true
			c.ends[name]()
		}
		c.ended.Wait()
		if h := c.holder(); h != "" {
			t.Errorf("%s still holds the Lease", h)
		}
	})
}

// TestWhoIsCutOff: who can't reach the store leads no more, before another one does; it leads again
// when it is the only one left.
func TestWhoIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCandidates(t, "a", "b")
		cut := c.next()
		c.refuse(cut, &sdk.StoreError{Code: sdk.StoreUnavailable, Reason: "nobody there"})
		other := c.next()
		if other == cut {
			t.Fatalf("%s leads without a store", cut)
		}
		if c.said("nobody there") == 0 {
			t.Errorf("nothing was said of it: %v", c.logs)
		}
		c.refuse(cut, nil)
		c.ends[other]()
		if name := c.next(); name != cut {
			t.Errorf("%s leads", name)
		}
	})
}

// TestTakenAway: a Lease that is deleted is made again by who leads, one that is somebody else's
// ends the term at once, and until it has run out nobody leads.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCandidates(t, "a", "b")
		other := map[string]string{"a": "b", "b": "a"}[c.next()]
		c.until("the other one knows who leads", func() bool { return c.looks(other) > 0 })
		mine := c.holder()
		c.put(nil)
		c.until("it is made again", func() bool { return c.holder() == mine })
		thief, seconds := "thief", int32(1)
		c.put(&coordination.Lease{Spec: coordination.LeaseSpec{HolderIdentity: &thief, LeaseDurationSeconds: &seconds}})
		c.next()
		if n := c.said("leads no more"); n != 1 {
			t.Errorf("it stopped %d times", n)
		}
	})
}

// TestEnds: a task that ends by itself ends all, and frees the Lease.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errors.New("broken")} {
		c := newCandidates(t)
		if err := c.election("a").Run(t.Context(), func(context.Context) error { return want }); err != want {
			t.Errorf("%v, not %v", err, want)
		}
		if h := c.holder(); h != "" || c.lease == nil {
			t.Errorf("%q holds the Lease", h)
		}
	}
	if err := (Election{Duration: Shortest - 1}).Run(t.Context(), nil); err == nil {
		t.Error("a Lease may be shorter than the shortest")
	}
}

// TestNobodyKeepsLeases: nobody leads, and it is said once, not each time.
func TestNobodyKeepsLeases(t *testing.T) {
	t.Parallel()
	c := newCandidates(t)
	tried := make(chan struct{}, 100)
	objects := &counting{client: client{memory: c.memory, name: "a"}, tried: tried}
	c.refuse("a", &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: "no plugin of plugins.yaml takes writes"})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	e := c.election("a")
	e.Objects = objects
	go func() {
		ended <- e.Run(ctx, func(context.Context) error { return errors.New("it leads") })
	}()
	for range 4 {
		<-tried
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := c.said("no plugin of plugins.yaml takes writes"); n != 1 {
		t.Errorf("it was said %d times: %v", n, c.logs)
	}
}

// TestNoNamespace: nobody leads where a Lease can't be made as its namespace is not there, which is
// said.
func TestNoNamespace(t *testing.T) {
	t.Parallel()
	c := newCandidates(t)
	c.refuse("a", &sdk.StoreError{Code: sdk.StoreNotFound, Reason: `namespaces "system" not found`})
	ctx, end := context.WithCancel(t.Context())
	e := c.election("a")
	tried := make(chan struct{}, 100)
	e.Objects = &counting{client: client{memory: c.memory, name: "a"}, tried: tried}
	ended := make(chan error)
	go func() {
		ended <- e.Run(ctx, func(context.Context) error { return errors.New("it leads") })
	}()
	for range 4 {
		<-tried
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := c.said(`namespaces "system" not found`); n != 1 {
		t.Errorf("it was said %d times: %v", n, c.logs)
	}
}

// counting tells of each Get.
type counting struct {
	client
	tried chan struct{}
}

func (c *counting) Get(ctx context.Context, table, namespace, name string) ([]byte, error) {
	c.tried <- struct{}{}
	return c.client.Get(ctx, table, namespace, name)
}
