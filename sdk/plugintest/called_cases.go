package plugintest

import (
	"context"
	"fmt"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// calledCases are of plugins that answer calls of gRPC (Ready.methods).
func calledCases() []suiteCase {
	return []suiteCase{
		{"unknown methods", unknownMethods},
		{"hostile requests", hostileRequests},
		{"many called at once", calledAtOnce},
		{"called while it ends", calledWhileItEnds},
	}
}

// knownCaller is who calls in the suite.
const knownCaller = "spiffe://cluster.local/ns/test/sa/plugintest"

// marked is in requests, and in nothing that a caller or an operator is told.
const marked = "hunter2-hunter2"

// beginCall calls without waiting.
func beginCall(h *Harness, m *pb.Call) uint64 {
	h.t.Helper()
	m.Id, m.Identities, m.RemoteAddress = h.nextID(), []string{knownCaller}, "127.0.0.1:30000"
	h.send(&pb.FromCore{Call: m})
	return m.Id
}

// waitCalled waits for the answers of calls.
func waitCalled(h *Harness, ids ...uint64) []*pb.Called {
	h.t.Helper()
	answers := make([]*pb.Called, len(ids))
	h.wait(fmt.Sprintf("%d answers (Called)", len(ids)), func() bool {
		for i, id := range ids {
			m := h.replies[id]
			if m == nil || m.Called == nil {
				return false
			}
			answers[i] = m.Called
		}
		return true
	})
	return answers
}

// startCalled starts a plugin that has a state.
func startCalled(k *kit) *Harness {
	h := k.start()
	h.Send(k.world(h.Ready(), 3)...)
	return h
}

// unknownMethods: what the plugin doesn't offer fails.
func unknownMethods(k *kit) {
	h := startCalled(k)
	for _, method := range []string{"/plugintest.Nothing/Nothing", "", h.Ready().Methods[0] + "More"} {
		if a := waitCalled(h, beginCall(h, &pb.Call{Method: method})); a[0].Code == 0 {
			h.failed("the method %q, which Ready.methods doesn't have, is answered; it must fail, with code 12 (Unimplemented)", method)
		}
	}
}

// hostileRequests: bytes that can't be read, and large ones, are an error of that call at most, in
// words that have nothing of the request.
func hostileRequests(k *kit) {
	h := startCalled(k)
	nested := strings.Repeat("\x0a\x7f", 50_000)
	for _, method := range h.Ready().Methods {
		for _, request := range []string{"", "\xff\xff\xff", "\x0a\x0f" + marked, marked, nested, strings.Repeat(marked, 40_000)} {
			a := waitCalled(h, beginCall(h, &pb.Call{Method: method, Request: []byte(request)}))
			if strings.Contains(a[0].Message, marked) {
				h.failed("what %s says repeats the request", method)
			}
			if a[0].Code == 0 && a[0].Message != "" {
				h.failed("%s is answered with code 0, and says why it failed: %s", method, a[0].Message)
			}
		}
	}
	for _, line := range append(h.Logs(), h.stderr.last()...) {
		if strings.Contains(line, marked) {
			h.failed("the log repeats the request")
		}
	}
}

// calledAtOnce: each of many calls has its own answer.
func calledAtOnce(k *kit) {
	h := startCalled(k)
	var ids []uint64
	for i := range 200 {
		methods := h.Ready().Methods
		ids = append(ids, beginCall(h, &pb.Call{Method: methods[i%len(methods)], Request: []byte{0xff}}))
	}
	waitCalled(h, ids...)
}

// calledWhileItEnds: calls in hand, which nobody waits for any more, don't hold the plugin's end
// up.
func calledWhileItEnds(k *kit) {
	h := startCalled(k)
	for range 50 {
		beginCall(h, &pb.Call{Method: h.Ready().Methods[0], Request: []byte{0xff}})
	}
	_ = h.link.Send(context.Background(), &pb.FromCore{Drain: &pb.Drain{}})
	k.ends(h, "Drain, with calls in hand")
}
