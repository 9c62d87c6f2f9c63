package sdk_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// asks starts a controller that does one thing with objects, which answer gives, and returns what
// comes of it.
func asks(t *testing.T, answer func(*pb.Store) *pb.Stored, do func(context.Context, sdk.Objects) error) error {
	t.Helper()
	begin, done := make(chan struct{}), make(chan error, 1)
	h := plugintest.Start(t, sdk.ControllerPlugin{Name: "asks", Version: "1", New: sdk.WithoutConfig(func() (sdk.Controller, error) {
		return sdk.ControllerFunc(func(ctx context.Context, out sdk.Publisher) error {
			<-begin
			done <- do(ctx, sdk.ObjectsOf(out))
			return nil
		}), nil
	})}, nil)
	h.OnStore(answer)
	close(begin)
	return <-done
}

// TestObjectsAsk: each method asks what it says, and gets its answer.
func TestObjectsAsk(t *testing.T) {
	var mu sync.Mutex
	var verbs []pb.Verb
	answer := func(m *pb.Store) *pb.Stored {
		mu.Lock()
		defer mu.Unlock()
		verbs = append(verbs, m.Verb)
		switch m.Verb {
		case pb.VerbList:
			if m.Namespace != "ns" || m.Page != "p" || m.Limit != 3 {
				t.Errorf("%+v", m)
			}
			return &pb.Stored{Objects: [][]byte{{}, {}}, Page: "q"}
		case pb.VerbDelete:
			return &pb.Stored{Code: sdk.StoreConflict, Field: "f", Error: "no"}
		}
		return &pb.Stored{Object: m.Object}
	}
	err := asks(t, answer, func(ctx context.Context, o sdk.Objects) error {
		_, err1 := o.Get(ctx, "t", "ns", "a")
		objects, next, err2 := o.List(ctx, "t", "ns", sdk.Page{Page: "p", Limit: 3})
		_, err3 := o.Create(ctx, "t", []byte("{}"))
		_, err4 := o.Update(ctx, "t", []byte("{}"))
		_, err5 := o.UpdateStatus(ctx, "t", []byte("{}"))
		_, err6 := o.Patch(ctx, "t", "ns", "a", []byte("{}"), "5")
		err7 := o.Delete(ctx, "t", "ns", "a", "5")
		if len(objects) != 2 || next != "q" {
			return errors.New("the list is another")
		}
		var e *sdk.StoreError
		if !errors.As(err7, &e) || e.Code != sdk.StoreConflict || e.Field != "f" || e.Reason != "no" {
			return errors.Join(errors.New("the error is another"), err7)
		}
		return errors.Join(err1, err2, err3, err4, err5, err6)
	})
	if err != nil {
		t.Error(err)
	}
	if want := []pb.Verb{1, 2, 3, 4, 5, 6, 7}; !slices.Equal(verbs, want) {
		t.Errorf("%v", verbs)
	}
}

// TestObjectsWait: more calls than may be on their way wait; what is too large fails alone; a ctx
// that ends is a missed deadline.
func TestObjectsWait(t *testing.T) {
	do := func(ctx context.Context, o sdk.Objects) error {
		if _, err := o.Create(ctx, "t", make([]byte, session.MaxMessage)); sdk.CodeOf(err) != sdk.StoreInvalid {
			return errors.Join(errors.New("1 MiB is taken"), err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := o.Get(short, "t", "ns", "slow"); sdk.CodeOf(err) != sdk.StoreDeadline {
			return errors.Join(errors.New("it waits longer than it may"), err)
		}
		var all sync.WaitGroup
		errs := make([]error, 500)
		for i := range errs {
			all.Go(func() { _, errs[i] = o.Get(ctx, "t", "ns", "a") })
		}
		all.Wait()
		return errors.Join(errs...)
	}
	var mu sync.Mutex
	most, now := 0, 0
	release := make(chan struct{})
	defer close(release)
	err := asks(t, func(m *pb.Store) *pb.Stored {
		if m.Name == "slow" {
			<-release
		}
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); defer mu.Unlock(); now-- }()
		return &pb.Stored{}
	}, do)
	if err != nil {
		t.Error(err)
	}
	if most > session.MaxStores {
		t.Errorf("%d were on their way", most)
	}
}

// TestObjectsAtTheEnd: what a plugin asks after it was drained is answered.
func TestObjectsAtTheEnd(t *testing.T) {
	done := make(chan error, 1)
	h := plugintest.Start(t, sdk.ControllerPlugin{Name: "asks", Version: "1", New: sdk.WithoutConfig(func() (sdk.Controller, error) {
		return sdk.ControllerFunc(func(ctx context.Context, out sdk.Publisher) error {
			<-ctx.Done()
			_, err := sdk.ObjectsOf(out).Get(context.WithoutCancel(ctx), "t", "ns", "a")
			done <- err
			return nil
		}), nil
	})}, nil)
	h.OnStore(func(*pb.Store) *pb.Stored { return &pb.Stored{} })
	if err := h.Drain(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// panics is a store whose every method fails in its own way.
type panics struct{ sdk.ConfigSourceFunc }

func (panics) Writes() []string                                            { return []string{"t"} }
func (panics) Get(context.Context, string, string, string) ([]byte, error) { panic("at once") }
func (panics) List(context.Context, string, string, sdk.Page) ([][]byte, string, error) {
	return [][]byte{make([]byte, 600<<10), make([]byte, 600<<10)}, "", nil
}
func (panics) Create(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("limits.call is no deadline")
	}
	return nil, context.DeadlineExceeded
}
func (panics) Update(context.Context, string, []byte) ([]byte, error) {
	return make([]byte, 2<<20), nil
}
func (panics) UpdateStatus(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("away")
}
func (panics) Patch(context.Context, string, string, string, []byte, string) ([]byte, error) {
	return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Field: "spec", Reason: "no"}
}
func (panics) Delete(context.Context, string, string, string, string) error { return nil }

// TestStoreFails: whatever a store's methods do, each call has its answer, and the plugin goes on.
func TestStoreFails(t *testing.T) {
	h := plugintest.Start(t,
		sdk.ConfigSourcePlugin{Name: "panics", Version: "1", Publishes: []string{"t"}, New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) {
			return panics{func(ctx context.Context, out sdk.Publisher) error { return out.Synced() }}, nil
		})}, nil)
	if got := h.Ready().Writes; !slices.Equal(got, []string{"t"}) {
		t.Errorf("writes %v", got)
	}
	for verb, want := range map[pb.Verb]pb.Code{
		pb.VerbGet: sdk.StoreUnavailable, pb.VerbList: sdk.StoreUnsupported, pb.VerbUpdate: sdk.StoreInvalid, pb.VerbUpdateStatus: sdk.StoreUnavailable,
		pb.VerbPatch: sdk.StoreInvalid, pb.VerbDelete: pb.CodeOk, pb.VerbCreate: sdk.StoreDeadline, 99: sdk.StoreUnsupported,
	} {
		if a := h.Store(&pb.Store{Verb: verb, Table: "t"}); a.Code != want || (a.Code != pb.CodeOk) != (a.Error != "") {
			t.Errorf("%v: %v %q, not %v", verb, a.Code, a.Error, want)
		}
	}
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool { return text == "the plugin panicked" })
}
