package push

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func drain(q *Queue) (ids []uint64) {
	for id, ok := q.Next(); ok; id, ok = q.Next() {
		ids = append(ids, id)
	}
	return ids
}

func TestOnePendingEach(t *testing.T) {
	q := NewQueue(Limits{})
	for _, id := range []uint64{1, 2, 1, 3, 2} {
		q.Enqueue(id, Other)
	}
	if got := drain(q); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Fatal(got)
	}
	q.Enqueue(1, Other) // while it runs
	if got := drain(q); got != nil {
		t.Fatal(got)
	}
	q.Done(1)
	if got := drain(q); !slices.Equal(got, []uint64{1}) {
		t.Fatal(got)
	}
}

func TestUrgentFirstButOthersToo(t *testing.T) {
	q := NewQueue(Limits{})
	for id := range uint64(4) {
		q.Enqueue(id, Other)
		q.Enqueue(10+id, Urgent)
	}
	if got := drain(q); !slices.Equal(got, []uint64{10, 11, 0, 12, 13, 1, 2, 3}) {
		t.Fatal(got)
	}
	q.Done(1)
	q.Done(2)
	q.Enqueue(1, Other)
	q.Enqueue(2, Other)
	q.Enqueue(2, Urgent) // becomes urgent
	if got := drain(q); !slices.Equal(got, []uint64{2, 1}) {
		t.Fatal(got)
	}
}

func TestSmallBeforeAll(t *testing.T) {
	q := NewQueue(Limits{})
	q.Enqueue(1, Other)
	q.Enqueue(2, Urgent)
	for id := range uint64(2*Small.most() + 1) {
		q.Enqueue(10+id, Small)
	}
	q.Enqueue(1, Small) // becomes small, at the end of them
	q.Enqueue(3, Other)
	got := drain(q)
	if got[Small.most()] != 2 || got[2*Small.most()+1] != 3 || got[len(got)-1] != 1 {
		t.Fatal(got)
	}
}

func TestLimits(t *testing.T) {
	q := NewQueue(Limits{Running: 2, Bytes: 10})
	for id := range uint64(4) {
		q.Enqueue(id, Other)
	}
	if got := drain(q); !slices.Equal(got, []uint64{0, 1}) {
		t.Fatal(got)
	}
	q.Sending(0, 10)
	q.Done(1)
	if got := drain(q); got != nil { // too many bytes on their way
		t.Fatal(got)
	}
	q.Yield(0) // slow
	if got := drain(q); !slices.Equal(got, []uint64{2, 3}) {
		t.Fatal(got)
	}
	q.Enqueue(0, Other)
	q.Done(2)
	if got := drain(q); got != nil { // it still runs
		t.Fatal(got)
	}
	q.Done(0)
	if got := drain(q); !slices.Equal(got, []uint64{0}) {
		t.Fatal(got)
	}
}

// TestComposing: a turn whose bytes aren't known keeps others back, since they could all be large.
func TestComposing(t *testing.T) {
	q := NewQueue(Limits{Bytes: 10, Composing: 2})
	for id := range uint64(5) {
		q.Enqueue(id, Other)
	}
	if got := drain(q); !slices.Equal(got, []uint64{0, 1}) {
		t.Fatal(got)
	}
	q.Sending(0, 1)
	q.Done(1) // it had nothing
	if got := drain(q); !slices.Equal(got, []uint64{2, 3}) {
		t.Fatal(got)
	}
	q.Sending(2, 9)
	if got := drain(q); got != nil {
		t.Fatal(got)
	}
	q.Sending(2, -9) // written
	if got := drain(q); !slices.Equal(got, []uint64{4}) {
		t.Fatal(got)
	}
	for id := range uint64(5) {
		q.Remove(id)
	}
	if q.composing != 0 || q.running != 0 || q.bytes != 0 {
		t.Fatal(q.composing, q.running, q.bytes)
	}
}

// TestQueueHistories: over random histories no limit is exceeded, nobody runs twice at once,
// whoever asked gets a turn, and in the end everything is free (trap 6).
func TestQueueHistories(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0))
		limits := Limits{Running: random.IntN(4), Bytes: int64(random.IntN(30)), Composing: random.IntN(4)}
		q := NewQueue(limits)
		wanted, running := map[uint64]bool{}, map[uint64]bool{}
		admit := func() {
			for {
				slots, _, bytes := q.Load()
				id, ok := q.Next()
				if !ok {
					return
				}
				if running[id] || !wanted[id] || limits.Running > 0 && slots >= limits.Running ||
					limits.Bytes > 0 && bytes >= limits.Bytes ||
					limits.Composing > 0 && q.composing > limits.Composing {
					t.Fatalf("seed %d: %d must not run", seed, id)
				}
				running[id] = true
				delete(wanted, id)
			}
		}
		for range random.IntN(100) {
			id := uint64(random.IntN(6))
			switch random.IntN(7) {
			case 0, 1, 2:
				q.Enqueue(id, Class(random.IntN(int(classes))))
				wanted[id] = true
			case 3:
				q.Sending(id, int64(random.IntN(10)))
			case 4:
				if running[id] {
					q.Yield(id)
				}
			case 5:
				if running[id] {
					q.Done(id)
					delete(running, id)
				}
			case 6:
				q.Remove(id)
				delete(running, id)
				delete(wanted, id)
			}
			if random.IntN(3) > 0 {
				admit()
			}
		}
		for admit(); len(running) > 0; admit() {
			for id := range running {
				q.Done(id)
				delete(running, id)
			}
		}
		if slots, pending, bytes := q.Load(); len(wanted) > 0 || slots != 0 || pending != 0 || bytes != 0 || q.composing != 0 || len(q.members) != 0 {
			t.Fatalf("seed %d: left over: %v, %d running, %d pending, %d bytes", seed, wanted, slots, pending, bytes)
		}
	}
}

// TestTurns: goroutines that come, push and go (some in the middle of a turn) never exceed the
// limit and leave nothing behind.
func TestTurns(t *testing.T) {
	turns := NewTurns(Limits{Running: 2})
	var mu sync.Mutex
	now := 0
	step := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		if now += by; now > 2 {
			t.Error("too many at once")
		}
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			m := turns.Join()
			defer m.Leave()
			for j := range 20 {
				m.Want(Class(j % 3))
				<-m.Turn()
				step(1)
				m.Sending(1)
				step(-1)
				if i%5 == 0 && j == 10 {
					return
				}
				m.Done()
			}
		})
	}
	wg.Wait()
	if running, pending, bytes := turns.Load(); running+pending != 0 || bytes != 0 {
		t.Fatal(running, pending, bytes)
	}
}
