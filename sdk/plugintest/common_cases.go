package plugintest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// endTime is how long a plugin may take to end (limits.stop).
const endTime = 5 * time.Second

func commonCases() []suiteCase {
	return []suiteCase{
		{"config errors", (*kit).configErrors},
		{"unknown messages", (*kit).unknownMessages},
		{"reconnect", (*kit).reconnect},
		{"slow core", (*kit).slowCore},
		{"drain", (*kit).drain},
		{"core is gone", (*kit).coreIsGone},
	}
}

// ready checks what the plugin says of itself.
func (k *kit) ready() *pb.Ready {
	if k.Source != nil {
		k.fill(3)
	}
	h := k.start()
	r := h.Ready()
	switch {
	case r.Version != 1:
		h.failed("Ready.version is %d; Hello offered version 1 alone", r.Version)
	case r.Plugin == "":
		h.failed("Ready.plugin is empty: a plugin has a name")
	case r.Kind.Word() == "":
		h.failed("Ready.kind is %d, which is no kind", r.Kind)
	case k.Kind != "" && k.Kind != r.Kind.Word():
		h.failed("the plugin says that it is a %s, not a %s", r.Kind.Word(), k.Kind)
	case r.Kind.Serves() && len(r.Types) == 0:
		h.failed("a %s declares the types of its resources in Ready.types", r.Kind.Word())
	case r.Kind.Source() && len(r.Publishes) == 0:
		h.failed("a %s declares the tables that it publishes in Ready.publishes", r.Kind.Word())
	}
	for _, table := range r.Secrets {
		if !slices.Contains(slices.Concat(r.Publishes, r.Writes), table) &&
			!slices.ContainsFunc(r.Reads, func(read *pb.Read) bool { return read.Table == table }) {
			h.failed("the plugin says of the table %s that its rows are secrets (Ready.secrets), and neither reads nor publishes nor writes it", table)
		}
	}
	return r
}

// configErrors: what a plugin can't use it refuses; it neither dies of it nor keeps silent.
func (k *kit) configErrors() {
	for _, config := range k.BadConfigs {
		h := start(k, k.target, config)
		h.waitLong("Ready or Refused", startTimeout, func() bool { return h.ready != nil || h.refused != nil })
		if h.refused == nil {
			h.failed("the plugin took the config %s, which it should refuse", encode(k, config))
		} else if h.refused.Reason == "" {
			h.failed("the plugin refused the config %s without a reason", encode(k, config))
		}
	}
	for _, odd := range []string{`[1,2]`, `"text"`, `{"no such key": {"deep": [null]}}`} {
		h := start(k, k.target, odd)
		h.waitLong("Ready or Refused for the config "+odd, startTimeout, func() bool { return h.ready != nil || h.refused != nil })
	}
}

// unknownMessages are skipped, wherever they come, and credit is given back for them.
func (k *kit) unknownMessages() {
	h := k.start()
	// Field 999 of FromCore, with four bytes; a Ping with a field that nobody knows.
	for _, frame := range [][]byte{{0xba, 0x3e, 4, 1, 2, 3, 4}, {0x1a, 5, 0x08, 77, 0xba, 0x3e, 0}} {
		h.trace.add("core   -> a message with fields that nobody knows")
		h.trace.send.Lock()
		err := h.trace.Carrier.Send(frame)
		h.trace.send.Unlock()
		if err != nil {
			k.Fatalf("sending a message of an unknown kind: %v", err)
		}
	}
	h.ping(78)
	h.wait("Pong{77}", func() bool { return h.trace.ponged(77) })
	k.snapshot(h)
}

// ping asks whether the plugin is there, and waits for the answer.
func (h *Harness) ping(id uint64) {
	h.t.Helper()
	h.send(&pb.FromCore{Ping: &pb.Ping{Id: id}})
	patience := h.patient(Timeout)
	deadline := time.Now().Add(patience)
	for !h.trace.ponged(id) {
		if time.Now().After(deadline) {
			h.t.Fatalf("no Pong{%d} within %s%s", id, patience, h.logged())
		}
		time.Sleep(time.Millisecond)
	}
}

// reconnect: a new session begins with nothing, and has the same answers to the same questions,
// byte by byte.
func (k *kit) reconnect() {
	if k.Source != nil {
		k.fill(3)
	}
	first, second := k.start(), k.start()
	before, after := k.snapshot(first), k.snapshot(second)
	for _, d := range differences(before, after) {
		second.failed("asked again, in a new session, the plugin answers differently: %s", d)
	}
}

// differences between two snapshots, at most five.
func differences(before, after map[string]string) (list []string) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if now, ok := after[key]; !ok {
			list = append(list, key+" is gone")
		} else if now != before[key] {
			list = append(list, fmt.Sprintf("%s has other bytes (%d, now %d)", key, len(before[key]), len(now)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok {
			list = append(list, key+" is new")
		}
	}
	return list[:min(len(list), 5)]
}

// slowCore: while the core gives no credit back the plugin goes on, and waits where it has used up
// its own, which most plugins don't here; all is there afterwards.
func (k *kit) slowCore() {
	if k.Source != nil {
		k.fill(k.Many)
	}
	h := k.start()
	h.hold(true)
	if r := h.Ready(); r.Kind.Generates() || r.Derives {
		h.Send(k.world(r, k.Many)...)
	}
	h.ping(1)
	h.ping(2)
	h.hold(false)
	if r := h.Ready(); r.Kind.Generates() || r.Derives {
		h.waitLongDone(1)
	}
	k.snapshot(h)
}

// drain: the plugin ends by itself.
func (k *kit) drain() {
	h := k.start()
	k.snapshot(h)
	_ = h.link.Send(context.Background(), &pb.FromCore{Drain: &pb.Drain{}})
	k.ends(h, "Drain")
}

// coreIsGone: the session is torn and the lifeline ends.
func (k *kit) coreIsGone() {
	h := k.start()
	h.run.abandon()
	k.ends(h, "the core was gone")
}

// ends waits for the plugin's end.
func (k *kit) ends(h *Harness, after string) {
	h.mu.Lock()
	ended := h.ended
	h.ended = nil
	h.mu.Unlock()
	if err := h.finish(ended, h.patient(endTime), after); err != nil {
		h.failed("%v", err)
	}
}
