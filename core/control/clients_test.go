package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// register is a client whose metadata has the key group.
func register(t *testing.T, id string) xds.Peer {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"group": id})
	if err != nil {
		t.Fatal(err)
	}
	p := peer(id)
	p.Node = &corev3.Node{Id: id, Metadata: metadata}
	return p
}

// met is what a plugin is told of clients, and that in full of which the words end here.
func met(p *plugin) (all []string) {
	for _, m := range p.others() {
		switch {
		case m.Attach != nil:
			all = append(all, fmt.Sprintf("attach %d %v plain %v since %d", m.Attach.Connection, m.Attach.Identities, m.Attach.Plain, m.Attach.Since))
		case m.Detach != nil:
			all = append(all, fmt.Sprintf("detach %d", m.Detach.Connection))
		case m.Report != nil:
			all = append(all,
				fmt.Sprintf("report %d %s %d %s", m.Report.Connection, m.Report.Type, m.Report.Event, m.Report.Detail[:min(len(m.Report.Detail), 10)]))
		}
	}
	return all
}

// TestClients: a controller that asks for it is told of the clients that have one of its keys, and
// of what they say of their health, as it is and not as it was; others are told nothing. One that
// comes back is told of all that are there, as they were.
func TestClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, state.Expected{Name: "asks", Kind: pb.KindController}, state.Expected{Name: "not", Kind: pb.KindController})
		ready := func() *pb.Ready {
			return &pb.Ready{Clients: []string{"group"}, ClientReports: []string{"health"}}
		}
		asks, not := b.join("asks", ready()), b.join("not", &pb.Ready{})
		told := func(p *plugin, want ...string) {
			t.Helper()
			got := met(p)
			same := slices.EqualFunc(got, want, strings.HasPrefix)
			if !same {
				t.Errorf("told %q, not %q", got, want)
			}
		}
		said := func(s *stream, typeURL, word string) {
			s.Report(xds.Outcome{Type: typeURL, Health: true, Refused: word})
		}
		b.stream("other")
		first := b.streamOf(register(t, "first"))
		since := time.Now().UnixNano()
		told(asks, fmt.Sprintf("attach 2 [shop/first] plain false since %d", since))
		said(first, "health", "")
		said(first, "unknown", "x")
		told(asks, "report 2 health 3 ")
		for range 1000 { // what is said again and again is told once a second, the last always
			said(first, "health", "bad")
			said(first, "health", "")
			synctest.Wait()
		}
		said(first, "health", strings.Repeat("worse", 1000))
		told(asks)
		time.Sleep(time.Second)
		told(asks, "report 2 health 3 worseworse")
		time.Sleep(time.Minute)
		told(asks)

		brief := b.streamOf(register(t, "brief"))
		plain := register(t, "plain")
		plain.Plain, plain.Identities = true, nil
		b.streamOf(plain)
		told(asks, "attach 3 ", "attach 4 [] plain true")
		brief.Close()
		told(asks, "detach 3")

		asks.kill()
		b.streamOf(register(t, "while it was away")).Close()
		asks = b.join("asks", ready())
		told(asks, fmt.Sprintf("attach 2 [shop/first] plain false since %d", since), "report 2 health 3 worseworse", "attach 4 ")
		told(not)
	})
}

// TestClientsOfALazyPlugin: however many clients come and go while a plugin takes nothing, no more
// than so many messages wait for it; it learns how it is once it takes them.
func TestClientsOfALazyPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, state.Expected{Name: "asks", Kind: pb.KindController})
		asks := b.join("asks", &pb.Ready{Clients: []string{"*"}})
		for range 9000 {
			s := b.streamOf(register(t, strings.Repeat("comes and goes", 600)))
			synctest.Wait()
			s.Close()
			synctest.Wait()
		}
		stays := b.streamOf(register(t, "stays"))
		there, seen := map[string]bool{}, 0
		for range 100 {
			time.Sleep(time.Second)
			for _, text := range met(asks) {
				seen++
				what, rest, _ := strings.Cut(text, " ")
				id, _, _ := strings.Cut(rest, " ")
				if there[id] = true; what == "detach" {
					delete(there, id)
				}
			}
		}
		if len(there) != 1 || !there[fmt.Sprint(stays.ID())] || seen < 10_000 || seen > 16_000 {
			t.Errorf("%d are there after %d messages", len(there), seen)
		}
	})
}
