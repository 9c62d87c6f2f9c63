package etcd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// liar is an etcd that answers as it is told to.
type liar struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedWatchServer

	mu       sync.Mutex
	revision int64
	keys     []string
	// read and watch answer in its place, unless they are nil; asked counts watches, and what read
	// was asked.
	read  func(*etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error)
	watch func(etcdserverpb.Watch_WatchServer) error
	asked int
	// turned is closed when it answers otherwise: watches end then.
	turned chan struct{}
}

func newLiar(t *testing.T) (*liar, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &liar{revision: 5, keys: []string{"p/a"}, turned: make(chan struct{})}
	s := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	etcdserverpb.RegisterKVServer(s, w)
	etcdserverpb.RegisterWatchServer(s, w)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return w, "http://" + l.Addr().String()
}

// turn has it answer otherwise from now on.
func (w *liar) turn(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.asked = 0
	close(w.turned)
	w.turned = make(chan struct{})
}

func (w *liar) was() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func header(revision int64) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 7, Revision: revision}
}

func (w *liar) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	w.mu.Lock()
	read, out, turned := w.read, &etcdserverpb.RangeResponse{Header: header(w.revision), Count: int64(len(w.keys))}, w.turned
	for _, k := range w.keys {
		if k >= string(r.Key) && !r.CountOnly {
			out.Kvs = append(out.Kvs, &mvccpb.KeyValue{Key: []byte(k), Value: []byte("v"), CreateRevision: 1, ModRevision: 2})
		}
	}
	if read != nil && !r.CountOnly {
		w.asked++
	}
	w.mu.Unlock()
	if read == nil || r.CountOnly {
		return out, nil
	}
	answer, err := read(r)
	if answer == nil && err == nil { // never
		select {
		case <-ctx.Done():
		case <-turned:
		}
		return nil, status.Error(codes.Unavailable, "it did not answer")
	}
	return answer, err
}

func (w *liar) Watch(s etcdserverpb.Watch_WatchServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	w.mu.Lock()
	watch, turned := w.watch, w.turned
	if first.GetCreateRequest().GetStartRevision() <= w.revision { // what it missed is forgotten
		watch, turned = nil, make(chan struct{})
		close(turned)
	}
	w.asked++
	w.mu.Unlock()
	if err := s.Send(&etcdserverpb.WatchResponse{Header: header(5), Created: true}); err != nil {
		return err
	}
	if watch != nil {
		if err := watch(s); err != nil {
			return err
		}
	}
	select {
	case <-s.Context().Done():
		return nil
	case <-turned: // all is to be read anew
		if err := s.Send(&etcdserverpb.WatchResponse{Header: header(5), Canceled: true, CompactRevision: 5}); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	}
}

// TestLiar: an etcd that answers what no etcd does ends nothing, is asked again after a while, and
// takes nothing away of what is known; when it is well again, what there is arrives.
func TestLiar(t *testing.T) {
	reads := func(answer *etcdserverpb.RangeResponse, err error) func(w *liar) {
		return func(w *liar) {
			w.read = func(*etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) { return answer, err }
		}
	}
	watches := func(answer *etcdserverpb.WatchResponse) func(w *liar) {
		return func(w *liar) {
			w.watch = func(s etcdserverpb.Watch_WatchServer) error {
				if err := s.Send(answer); err != nil {
					return err
				}
				return status.Error(codes.Unavailable, "it ends")
			}
		}
	}
	pair := func(key string, bytes int) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(key), Value: make([]byte, bytes), ModRevision: 9}
	}
	page := func(count int64, more bool, all ...*mvccpb.KeyValue) *etcdserverpb.RangeResponse {
		return &etcdserverpb.RangeResponse{Header: header(9), Count: count, More: more, Kvs: all}
	}
	for name, tt := range map[string]struct {
		lie func(w *liar)
		// times is how often it is asked before it is well again.
		times int
	}{
		"keys of others":        {reads(page(1, false, pair("q/a", 1)), nil), 2},
		"a key that is shorter": {reads(page(1, false, pair("p", 1)), nil), 2},
		"a pair of nothing":     {reads(page(1, false, &mvccpb.KeyValue{}), nil), 2},
		"no revision":           {reads(&etcdserverpb.RangeResponse{}, nil), 2},
		"one page for ever":     {reads(page(0, true, pair("p/a", 1), pair("p/b", 1)), nil), 4},
		"too large":             {reads(page(1, false, pair("p/a", mostAnswer+1)), nil), 5},
		"denied":                {reads(nil, status.Error(codes.PermissionDenied, "etcdserver: permission denied")), 2},
		"silence":               {reads(nil, nil), 1},
		"an event of nothing":   {watches(&etcdserverpb.WatchResponse{Header: header(6), Events: []*mvccpb.Event{{}}}), 2},
		"an event of others":    {watches(&etcdserverpb.WatchResponse{Header: header(6), Events: []*mvccpb.Event{{Kv: pair("x", 1)}}}), 2},
		"an event of no header": {watches(&etcdserverpb.WatchResponse{Events: []*mvccpb.Event{{}}}), 2},
		"an event too large":    {watches(&etcdserverpb.WatchResponse{Header: header(6), Events: []*mvccpb.Event{{Kv: pair("p/a", mostAnswer+1)}}}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, endpoint := newLiar(t)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			log := func(sdk.Level, string, ...any) {}
			session := NewSession(Access{Endpoints: []string{endpoint}})
			batches := make(chan Batch, 100)
			f := &Followed{Session: session, Prefix: "p/", Most: 3, Left: func(int) {}, Log: log}
			running.Go(func() { session.Run(ctx, log) })
			running.Go(func() {
				if err := f.Run(ctx, func(b Batch) error { batches <- b; return nil }); err != nil {
					t.Error(err)
				}
			})
			asked := func(times int) {
				wait.For(t, "it is asked", func() error {
					if n := w.was(); n < times {
						return fmt.Errorf("it was asked %d times", n)
					}
					return nil
				})
			}
			is(t, <-batches, "p/a")
			asked(1) // the watch
			w.turn(func() { tt.lie(w) })
			asked(tt.times)
			w.turn(func() { w.read, w.watch, w.revision, w.keys = nil, nil, 20, []string{"p/a", "p/b"} })
			for { // all that it is told before is what there was
				b := <-batches
				if len(b.Put) == 2 {
					is(t, b, "p/a", "p/b")
					return
				}
				is(t, b, "p/a")
			}
		})
	}
}

// is: all that there is are these keys.
func is(t *testing.T, b Batch, keys ...string) {
	t.Helper()
	var got []string
	for _, p := range b.Put {
		got = append(got, "p/"+p.Key)
	}
	if !b.Whole || fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Errorf("it is told of %v (whole %v), not %v", got, b.Whole, keys)
	}
}
