package main

import (
	"context"
	"fmt"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// inSession are rogues that shake hands.
var inSession = map[string]func(*rogue) error{
	"never-ready":     func(r *rogue) error { return r.idle() },
	"version":         func(r *rogue) error { r.ready(&pb.Ready{Version: 99, Kind: pb.KindRegistry}); return r.idle() },
	"garbage-frames":  func(r *rogue) error { return r.frame([]byte("\xff\xff\xff\xff garbage")) },
	"half-frame":      halfFrame,
	"large-frame":     func(r *rogue) error { return r.frame(make([]byte, session.MaxMessage+1)) },
	"free-flood":      freeFlood,
	"log-flood":       logFlood,
	"row-flood":       rowFlood,
	"undeclared":      undeclared,
	"endless-rows":    endlessRows,
	"endless-bytes":   endlessRows,
	"long-row":        func(r *rogue) error { return long(r, 1) },
	"long-message":    func(r *rogue) error { return long(r, 2) },
	"rubbish-rows":    rubbishRows,
	"never-synced":    func(r *rogue) error { r.registry("rogue.example/Thing"); return r.idle() },
	"ignores-drain":   func(r *rogue) error { r.registry("rogue.example/Thing"); r.synced(); return r.idle() },
	"hungry":          hungry,
	"closes":          closes,
	"undeclared-type": undeclaredType,
	"undecodable":     undecodable,
	"wanted-unknown":  wantedUnknown,
	"wanted-twice":    wantedTwice,
	"patches":         patches,
	"callers":         callers,
}

// rogue is the plugin's side of a session, without a link that would keep the rules.
type rogue struct {
	carrier session.Carrier
}

func (r *rogue) recv() (*pb.FromCore, error) {
	b, err := r.carrier.Recv()
	if err != nil {
		return nil, err
	}
	m := new(pb.FromCore)
	return m, m.Unmarshal(b)
}

func (r *rogue) send(m *pb.FromPlugin) error { return r.carrier.Send(m.AppendTo(nil)) }

func (r *rogue) ready(m *pb.Ready) {
	if m.Version == 0 {
		m.Version = session.Version
	}
	m.Plugin, m.PluginVersion = "rogue", "v1"
	_ = r.send(&pb.FromPlugin{Ready: m})
}

func (r *rogue) registry(tables ...string) {
	r.ready(&pb.Ready{Kind: pb.KindRegistry, Publishes: tables})
}

func (r *rogue) synced() { _ = r.send(&pb.FromPlugin{Synced: &pb.Synced{}}) }

func (r *rogue) rows(table string, rows ...*pb.Row) error {
	return r.send(&pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: table, Upserts: rows}}}})
}

// idle reads and does nothing, whatever is said, and goes on after the session's end. It answers
// pings: it isn't to be ended for hanging.
func (r *rogue) idle() error {
	for {
		m, err := r.recv()
		if err != nil {
			forever()
		}
		if m.Ping != nil {
			_ = r.send(&pb.FromPlugin{Pong: &pb.Pong{Id: m.Ping.Id}})
		}
	}
}

// forever waits. A module in which nothing waits for time ends.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// frame sends bytes where a message should be.
func (r *rogue) frame(b []byte) error {
	r.registry("rogue.example/Thing")
	if err := r.carrier.Send(b); err != nil {
		return err
	}
	return r.idle()
}

func halfFrame(r *rogue) error {
	m := &pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "rogue.example/Thing", Upserts: []*pb.Row{{Key: "a/b", Payload: make([]byte, 1000)}}}}}}
	b := m.AppendTo(nil)
	return r.frame(b[:len(b)/2])
}

// freeFlood sends messages that cost nothing.
func freeFlood(r *rogue) error {
	r.registry("rogue.example/Thing")
	r.synced()
	for range million {
		if err := r.send(&pb.FromPlugin{Progress: &pb.Progress{}}); err != nil {
			return err
		}
	}
	r.ready(&pb.Ready{Kind: pb.KindRegistry})
	return r.idle()
}

const million = 1_000_000

// logFlood and rowFlood keep to their credit, as the SDK does for those who use it.
func logFlood(r *rogue) error {
	return r.flood(&pb.FromPlugin{Log: &pb.Log{Level: pb.LogLevelError, Text: "spam"}})
}

func rowFlood(r *rogue) error {
	return r.flood(&pb.FromPlugin{
		Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "rogue.example/Thing", Upserts: []*pb.Row{{Key: "a/b", Payload: []byte("x")}}}}},
	})
}

func (r *rogue) flood(m *pb.FromPlugin) error {
	r.registry("rogue.example/Thing")
	link := session.NewPlugin(r.carrier)
	go func() {
		for {
			if _, _, err := link.Recv(context.Background()); err != nil {
				return
			}
		}
	}()
	if err := link.Send(context.Background(), &pb.FromPlugin{Synced: &pb.Synced{}}); err != nil {
		return err
	}
	for i := range million {
		if m.Rows != nil {
			m.Rows.Tables[0].Upserts[0].Payload = fmt.Appendf(nil, "%d", i)
		}
		if err := link.Send(context.Background(), m); err != nil {
			return err
		}
	}
	<-link.Done()
	return nil
}

func undeclared(r *rogue) error {
	r.registry("rogue.example/Thing")
	if err := r.rows("services", &pb.Row{Key: "rogue/rogue.example"}); err != nil {
		return err
	}
	return r.idle()
}

func endlessRows(r *rogue) error {
	r.registry("rogue.example/Thing")
	for i := 0; ; i++ {
		if err := r.rows("rogue.example/Thing", &pb.Row{Key: fmt.Sprintf("a/%d", i)}); err != nil {
			return err
		}
	}
}

// long publishes rows of 100 kB in one message.
func long(r *rogue, rows int) error {
	r.registry("rogue.example/Thing")
	var all []*pb.Row
	for i := range rows {
		all = append(all, &pb.Row{Key: fmt.Sprintf("a/%d", i), Payload: make([]byte, 100_000)})
	}
	if err := r.rows("rogue.example/Thing", all...); err != nil {
		return err
	}
	return r.idle()
}

// rubbishRows publishes what nobody can read into tables that everybody reads.
func rubbishRows(r *rogue) error {
	tables := []string{"services", "endpoints", "workloads", "networking.istio.io/Gateway", "networking.istio.io/DestinationRule"}
	r.registry(tables...)
	for _, t := range tables {
		if err := r.rows(t, &pb.Row{Key: "rogue/rubbish", Payload: []byte("\xff\xff\xff rubbish")}); err != nil {
			return err
		}
	}
	r.synced()
	return r.idle()
}

// hungry takes memory for ever.
func hungry(r *rogue) error {
	r.registry("rogue.example/Thing")
	r.synced()
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		if len(all) > 1<<10 {
			panic("nobody minds")
		}
		time.Sleep(5 * time.Millisecond) // so that what looks four times a second sees it in time
	}
}

// closes ends its session in the middle of each revision.
func closes(r *rogue) error {
	r.ready(&pb.Ready{
		Kind: pb.KindRegistry, Publishes: []string{"services"}, Derives: true,
		Reads: []*pb.Read{{Table: "networking.istio.io/VirtualService"}},
	})
	for {
		m, err := r.recv()
		if err != nil {
			return err
		}
		if m.State != nil && !m.State.More {
			return r.send(&pb.FromPlugin{Rows: &pb.Rows{
				Revision: m.State.Revision, Tables: []*pb.TableRows{{Table: "services", Upserts: []*pb.Row{{Key: "rogue/half"}}}},
			}})
		}
	}
}

// callers answers what it was not asked.
func callers(r *rogue) error {
	r.ready(&pb.Ready{Kind: pb.KindAuthenticator})
	for id := range uint64(3) {
		for range 2 {
			if err := r.send(&pb.FromPlugin{Caller: &pb.Caller{Id: id, Identities: []string{"spiffe://x/ns/y/sa/z"}}}); err != nil {
				return err
			}
		}
	}
	return r.idle()
}
