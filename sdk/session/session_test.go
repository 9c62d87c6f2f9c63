package session_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func pair(t testing.TB) (*session.Core, *session.Plugin) {
	a, b := session.Pipe()
	core, plugin := session.NewCore(a), session.NewPlugin(b)
	t.Cleanup(func() {
		_ = core.Close()
		_ = plugin.Close()
		core.Wait()
		plugin.Wait()
	})
	return core, plugin
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func rows(number uint64, size int) *pb.Rows {
	return &pb.Rows{Revision: &pb.Revision{Number: number}, Tables: []*pb.TableRows{{Upserts: []*pb.Row{{Payload: make([]byte, size)}}}}}
}

// Both sides have 200 MB for each other at once, and no handler takes anything before its own side
// has sent half of it.
func TestBothWays(t *testing.T) {
	const messages, size = 400, 500_000
	core, plugin := pair(t)
	ctx := limited(t)
	var all sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	all.Go(func() {
		for i := range uint64(messages) {
			fail(core.Send(ctx, &pb.FromCore{State: &pb.State{Revision: &pb.Revision{Number: i}, Tables: rows(0, size).Tables}}))
		}
	})
	all.Go(func() {
		for i := range uint64(messages) {
			fail(plugin.Send(ctx, &pb.FromPlugin{Rows: rows(i, size)}))
		}
	})
	all.Go(func() {
		slow := time.NewTicker(50 * time.Microsecond)
		defer slow.Stop()
		for i := range uint64(messages) {
			<-slow.C
			m, cost, err := core.Recv(ctx)
			if err != nil || m.Rows.Revision.Number != i {
				t.Errorf("message %d: %v", i, err)
				return
			}
			core.Release(cost)
		}
	})
	all.Go(func() {
		slow := time.NewTicker(50 * time.Microsecond)
		defer slow.Stop()
		for i := range uint64(messages) {
			<-slow.C
			m, cost, err := plugin.Recv(ctx)
			if err != nil || m.State.Revision.Number != i {
				t.Errorf("message %d: %v", i, err)
				return
			}
			plugin.Release(cost)
		}
	})
	all.Wait()
	for name, s := range map[string]session.Stats{"core": core.Stats(), "plugin": plugin.Stats()} {
		if s.MostIn+s.MostOut > 2*session.InitialCredit || s.MostIn > session.InitialCredit || s.MostOut > session.InitialCredit {
			t.Errorf("%s held too much: %+v", name, s)
		}
		t.Logf("%s: %+v", name, s)
	}
}

// A sender without credit waits, in order; free messages pass; a canceled one leaves; credit lets
// the rest go.
func TestCredit(t *testing.T) {
	core, plugin := pair(t)
	ctx := limited(t)
	big := &pb.FromCore{State: &pb.State{Tables: rows(0, session.MaxMessage-100).Tables}}
	sent := 0
	for core.Stats().Credit >= uint64(big.Size()) {
		if err := core.Send(ctx, big); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	canceled, cancel := context.WithCancel(ctx)
	first := make(chan error, 1)
	go func() { first <- core.Send(canceled, big) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled Send: %v", err)
	}
	if err := core.Send(ctx, &pb.FromCore{Drain: &pb.Drain{}}); err != nil {
		t.Errorf("a free message: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- core.Send(ctx, big) }()
	for range sent + 1 {
		_, cost, err := plugin.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		plugin.Release(cost)
	}
	if err := <-waiting; err != nil {
		t.Errorf("after credit came: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	core, _ := pair(t)
	m := &pb.FromCore{State: &pb.State{Tables: rows(0, session.MaxMessage).Tables}}
	if err := core.Send(limited(t), m); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// What a broken peer can do ends the session with an error that names it.
func TestBreaches(t *testing.T) {
	large := (&pb.FromPlugin{Rows: rows(0, session.MaxMessage-100)}).AppendTo(nil)
	for _, c := range []struct {
		name  string
		frame []byte
		times int
		want  string
	}{
		{"too large", make([]byte, session.MaxMessage+1), 1, "larger than 1 MiB"},
		{"garbage", []byte{0xff, 0xff, 0xff}, 1, "can't be decoded"},
		{"more than its credit", large, 20, "of credit left"},
		{"more small ones than its credit", (&pb.FromPlugin{Synced: &pb.Synced{}}).AppendTo(nil), session.InitialCredit/session.MinCost + 1, "of credit left"},
		{"many Readys", (&pb.FromPlugin{Ready: &pb.Ready{}}).AppendTo(nil), 100, "come once"},
		{"absurd credit", (&pb.FromPlugin{Credit: &pb.Credit{Bytes: 1 << 60}}).AppendTo(nil), 1, "more than it can mean"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := session.Pipe()
			core := session.NewCore(a)
			defer core.Close()
			for range c.times {
				if b.Send(c.frame) != nil {
					break
				}
			}
			<-core.Done()
			if err := core.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// Messages of a later version are skipped and counted, and their credit comes back.
func TestUnknown(t *testing.T) {
	a, b := session.Pipe()
	core := session.NewCore(a)
	defer core.Close()
	unknown := append([]byte{0xfa, 0x3f, 0x0a}, make([]byte, 10)...) // Field 1023, 10 bytes.
	for range 3 {
		if err := b.Send(append([]byte{}, unknown...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send((&pb.FromPlugin{Synced: &pb.Synced{}}).AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	m, _, err := core.Recv(limited(t))
	if err != nil || m.Synced == nil || core.Stats().Skipped != 3 {
		t.Errorf("%+v %v, skipped %d", m, err, core.Stats().Skipped)
	}
}

// The link answers Ping while the plugin's code takes nothing; Progress and Done count as progress.
func TestSigns(t *testing.T) {
	core, plugin := pair(t)
	ctx := limited(t)
	began := core.LastProgress()
	if err := core.Send(ctx, &pb.FromCore{Ping: &pb.Ping{Id: 7}}); err != nil {
		t.Fatal(err)
	}
	for core.LastSeen().Equal(began) {
		if ctx.Err() != nil {
			t.Fatal("the sign was not seen")
		}
		time.Sleep(time.Millisecond)
	}
	if !core.LastProgress().Equal(began) {
		t.Error("Pong counted as progress")
	}
	if err := plugin.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}}); err != nil {
		t.Fatal(err)
	}
	for core.LastProgress().Equal(began) {
		if ctx.Err() != nil {
			t.Fatal("the sign was not seen")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestClose(t *testing.T) {
	core, plugin := pair(t)
	ctx := limited(t)
	if err := plugin.Send(ctx, &pb.FromPlugin{Synced: &pb.Synced{}}); err != nil {
		t.Fatal(err)
	}
	if err := plugin.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	_ = plugin.Close()
	if m, _, err := core.Recv(ctx); err != nil || m.Synced == nil {
		t.Errorf("what came before the end: %v %v", m, err)
	}
	if _, _, err := core.Recv(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	if err := plugin.Send(ctx, &pb.FromPlugin{Synced: &pb.Synced{}}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if err := core.Send(ctx, &pb.FromCore{Drain: &pb.Drain{}}); !errors.Is(err, io.EOF) {
		t.Errorf("Send after the other side's Close: %v", err)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "100KB": 100_000} {
		b.Run(name, func(b *testing.B) {
			core, plugin := pair(b)
			ctx := context.Background()
			go func() {
				for {
					m, cost, err := plugin.Recv(ctx)
					if err != nil {
						return
					}
					plugin.Release(cost)
					if plugin.Send(ctx, &pb.FromPlugin{Rows: &pb.Rows{Tables: m.State.Tables}}) != nil {
						return
					}
				}
			}()
			m := &pb.FromCore{State: &pb.State{Tables: rows(0, size).Tables}}
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				if err := core.Send(ctx, m); err != nil {
					b.Fatal(err)
				}
				_, cost, err := core.Recv(ctx)
				if err != nil {
					b.Fatal(err)
				}
				core.Release(cost)
			}
		})
	}
}
