package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Words that a client may have chosen are cut where they would make a message too large; what the
// core must know arrives.
func TestWordsAreCut(t *testing.T) {
	long := strings.Repeat("n", 2*session.MaxMessage)
	for _, most := range []uint32{0, 4096} {
		a, b := session.Pipe()
		core, plugin := session.NewCore(a), session.NewPlugin(b)
		ps := &pluginSession{link: plugin, hello: &pb.Hello{Limits: &pb.Limits{MessageBytes: most}}}
		for _, m := range []*pb.FromPlugin{
			{View: &pb.View{View: 1, Label: long, Facts: map[string]string{"labels": long, "a": "b"}}},
			{Place: &pb.Place{Connection: 1, Refused: long}},
			{Log: &pb.Log{Text: long}},
			{Done: &pb.Done{Faults: []*pb.Fault{{What: long, Reason: long}}}},
		} {
			ps.say(t.Context(), m)
			got, _, err := core.Recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Size() > ps.room() {
				t.Errorf("%d bytes", got.Size())
			}
		}
		_ = core.Close()
		_ = plugin.Close()
	}
}

// An answer that is larger than the core takes of this plugin is an error of its call, and a
// message that can't be cut is a line of log: the core would end the session over either.
func TestMessagesAreBounded(t *testing.T) {
	a, b := session.Pipe()
	core, plugin := session.NewCore(a), session.NewPlugin(b)
	t.Cleanup(func() { _, _ = core.Close(), plugin.Close() })
	ps := &pluginSession{link: plugin, hello: &pb.Hello{Limits: &pb.Limits{MessageBytes: 4096}}}
	ps.answer(t.Context(), &pb.FromPlugin{Called: &pb.Called{Id: 7, Response: make([]byte, 5000)}}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Called: &pb.Called{Id: 7, Code: codeInternal, Message: reason}}
	})
	ps.say(t.Context(), &pb.FromPlugin{Change: &pb.Change{View: 1, SetParts: true, Parts: make([]uint64, 5000)}})
	var got []string
	for range 3 {
		m, _, err := core.Recv(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case m.Log != nil:
			got = append(got, m.Log.Fields["answer"]+m.Log.Fields["message"])
		case m.Called != nil && m.Called.Id == 7 && strings.Contains(m.Called.Message, "limits.messageBytes is 4096"):
			got = append(got, "an error")
		}
	}
	if want := []string{"Called", "an error", "Change"}; !slices.Equal(got, want) {
		t.Errorf("the core heard %q", got)
	}
}

// A source says that it goes on.
func TestProgress(t *testing.T) {
	a, b := session.Pipe()
	core := session.NewCore(a)
	t.Cleanup(func() { _ = core.Close() })
	before := core.LastProgress()
	ps := &pluginSession{link: session.NewPlugin(b)}
	Progress(context.WithValue(t.Context(), sessionKey{}, ps))
	Progress(t.Context()) // outside of a plugin nothing happens
	for end := time.Now().Add(10 * time.Second); !core.LastProgress().After(before); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing came")
		}
	}
}

// TestLostAndFound: the core is told what changes, once, with the reason in one line of a bounded
// length.
func TestLostAndFound(t *testing.T) {
	a, b := session.Pipe()
	core := session.NewCore(a)
	t.Cleanup(func() { _ = core.Close() })
	ps := &pluginSession{link: session.NewPlugin(b)}
	ctx := context.WithValue(t.Context(), sessionKey{}, ps)
	Found(ctx) // it was never lost
	Lost(t.Context(), errors.New("outside of a plugin nothing happens"))
	Lost(ctx, errors.New("connection\nrefused"))
	Lost(ctx, errors.New("again"))
	Found(ctx)
	Found(ctx)
	Lost(ctx, errors.New(strings.Repeat("ä", maxWhy)))
	Found(ctx)
	Lost(ctx, nil)
	var got []string
	for range 5 {
		m, _, err := core.Recv(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case m.Lost != nil:
			got = append(got, m.Lost.Reason)
		case m.Found != nil:
			got = append(got, "")
		}
	}
	if want := []string{"connection refused", "", strings.Repeat("ä", maxWhy/2) + "…", "", "it does not say why"}; !slices.Equal(got, want) {
		t.Errorf("the core was told %q, want %q", got, want)
	}
}

// TestManyFaults: how many there are beyond those that are told is told, but not each number.
func TestManyFaults(t *testing.T) {
	told := func(n int) (int, string) {
		var list []*pb.Fault
		for i := range n {
			list = append(list, &pb.Fault{What: fmt.Sprint(i)})
		}
		list = bounded(list)
		return len(list), list[len(list)-1].Reason
	}
	for _, c := range []struct {
		n      int
		len    int
		reason string
	}{
		{maxFaults, maxFaults, ""},
		{maxFaults + 1, maxFaults + 1, "1 others or more: too many to be told"},
		{maxFaults + 1024, maxFaults + 1, "1024 others or more: too many to be told"},
		{maxFaults + 2047, maxFaults + 1, "1024 others or more: too many to be told"},
	} {
		if n, reason := told(c.n); n != c.len || reason != c.reason {
			t.Errorf("of %d: %d, the last because of %q", c.n, n, reason)
		}
	}
}
