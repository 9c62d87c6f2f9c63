package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/internal/archive"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is a conversation on one stream.
// Lines, with # comments:
//
//	delta                        the client speaks delta (otherwise state of the world)
//	envoy                        the client says that it is an Envoy
//	authenticated                the client is known
//	patience DURATION            for the client's answers
//	served TYPE NAME=CONTENT … [/ TYPE …]     what there is from now on: a new revision
//	unknown TYPE NAME …          names of which nothing is known yet (with the next `served`)
//	client TYPE …                a request: names; `ack`, `nack`, `stale`, `stale-nack` or `foreign` say what it answers. In delta names have + or -,
//	                             and NAME@CONTENT or NAME@VERSION is an initial resource version
//	later DURATION               time goes by
//	server TYPE NAME=CONTENT …   the next response, whole. NAME= is an empty resource; -NAME is removed (delta)
//	server nothing               there is none
//	server ignores               the last request was for a type that nobody serves
//	reported ack TYPE            what the source was told last (or nack)
//	refuses TYPE yes             what is shown of the client: it refuses something of what it is to have now (or no)
//	turn WHAT                    what the last request asked a turn for: answer (the client waits), push (one may go on) or none
func TestScenarios(t *testing.T) { archive.Play(t, play) }

var shortNames = map[string]string{
	"cds": cds, "eds": eds, "lds": lds, "rds": rds, "sds": sds, "ecds": ecds, "nds": nds, "plain": plain,
	"other": "type.googleapis.com/other",
}

// conversation is a machine between a client and a twin.
type conversation struct {
	t          *testing.T
	source     *twin
	connection *twinConnection
	machine    *machine
	now        time.Time
	alarm      time.Time
	pending    []*response
	nonces     map[string][]string // received, by type
	last       effects
}

func newConversation(t *testing.T, patience time.Duration) *conversation {
	source := newTwin()
	c, _ := source.Connect(t.Context(), Peer{}, func(Wake) {})
	connection := c.(*twinConnection)
	m := &machine{common: newCommon(patience, ""), offers: c.Offers, prefix: "n"}
	return &conversation{t: t, source: source, connection: connection, machine: m, now: time.Unix(0, 0), nonces: map[string][]string{}}
}

func play(t *testing.T, script string) {
	c := newConversation(t, 500*time.Millisecond)
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := c.line(words[0], words[1:]); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
	if len(c.pending) > 0 {
		t.Fatalf("at the end: the server said more: %s", describe(c.pending[0]))
	}
}

func (c *conversation) line(verb string, words []string) error {
	if verb != "server" && verb != "reported" && verb != "turn" && verb != "refuses" && len(c.pending) > 0 {
		return fmt.Errorf("before that the server says: %s", describe(c.pending[0]))
	}
	switch verb {
	case "delta":
		c.machine.delta = true
	case "envoy":
		c.machine.envoy = true
	case "authenticated":
		c.machine.authenticated = true
	case "patience":
		c.machine.common.patience, _ = time.ParseDuration(words[0])
	case "served":
		c.served(words)
		c.serve()
	case "ahead": // served, but the turn is for endpoints alone
		c.served(words)
		c.machine.now = c.now
		c.pending = append(c.pending, c.machine.ahead(c.connection.Pull())...)
	case "unknown":
		c.source.unknown[shortNames[words[0]]] = map[string]bool{}
		for _, n := range words[1:] {
			c.source.unknown[shortNames[words[0]]][n] = true
		}
	case "client":
		c.client(shortNames[words[0]], words[1:])
	case "later":
		d, _ := time.ParseDuration(words[0])
		c.now = c.now.Add(d)
		if !c.alarm.IsZero() && !c.now.Before(c.alarm) {
			c.serve()
		}
	case "server":
		return c.server(words)
	case "reported":
		return c.reported(words)
	case "refuses":
		return c.refuses(words[0], words[1] == "yes")
	case "turn":
		return c.turn(words[0])
	default:
		return fmt.Errorf("unknown word %q", verb)
	}
	return nil
}

func (c *conversation) served(words []string) {
	c.source.change(func(r map[string]map[string]string) {
		for _, part := range strings.Split(strings.Join(words, " "), "/") {
			f := strings.Fields(part)
			set := map[string]string{}
			for _, w := range f[1:] {
				name, content, _ := strings.Cut(w, "=")
				set[name] = content
			}
			r[shortNames[f[0]]] = set
		}
	})
}

func (c *conversation) serve() {
	c.machine.now = c.now
	out, alarm := c.machine.serve(c.now, c.connection.Pull())
	c.alarm = alarm
	c.pending = append(c.pending, out...)
}

// nonce returns what a word of a request stands for.
func (c *conversation) nonce(typeURL, word string) (nonce string, nack *rpc.Status, ok bool) {
	received := c.nonces[typeURL]
	switch word {
	case "ack":
		return received[len(received)-1], nil, true
	case "nack":
		return received[len(received)-1], &rpc.Status{Message: "no"}, true
	case "stale":
		return received[len(received)-2], nil, true
	case "stale-nack":
		return received[len(received)-2], &rpc.Status{Message: "no"}, true
	case "foreign":
		return "of another stream", nil, true
	}
	return "", nil, false
}

func (c *conversation) client(typeURL string, words []string) {
	sotw := &discovery.DiscoveryRequest{TypeUrl: typeURL}
	delta := &discovery.DeltaDiscoveryRequest{TypeUrl: typeURL, InitialResourceVersions: map[string]string{}}
	for _, w := range words {
		nonce, nack, ok := c.nonce(typeURL, w)
		name, version, initial := strings.Cut(w, "@")
		switch {
		case ok:
			sotw.ResponseNonce, sotw.ErrorDetail = nonce, nack
			delta.ResponseNonce, delta.ErrorDetail = nonce, nack
		case initial:
			delta.InitialResourceVersions[name] = resource(typeURL, name, version).Version()
		case w[0] == '+':
			delta.ResourceNamesSubscribe = append(delta.ResourceNamesSubscribe, w[1:])
		case w[0] == '-':
			delta.ResourceNamesUnsubscribe = append(delta.ResourceNamesUnsubscribe, w[1:])
		default:
			sotw.ResourceNames = append(sotw.ResourceNames, w)
		}
	}
	if c.machine.delta {
		c.apply(c.machine.deltaRequest(delta))
	} else {
		c.apply(c.machine.sotw(sotw))
	}
}

func (c *conversation) refuses(name string, want bool) error {
	for _, t := range (&stream{machine: c.machine, connection: c.connection, node: &corev3.Node{}}).status().Types {
		if t.Type == shortNames[name] && (t.Refused != "") != want {
			return fmt.Errorf("it says %q", t.Refused)
		}
	}
	return nil
}

func (c *conversation) apply(e effects) {
	c.last = e
	if w := e.subscribe; w != nil {
		c.connection.Subscribe(w.typeURL, w.wildcard, w.names)
	}
	if e.report != nil {
		c.connection.Report(*e.report)
	}
	if e.turn {
		c.serve()
	}
}

func (c *conversation) server(words []string) error {
	want := strings.Join(words, " ")
	if want == "ignores" {
		if !c.last.unknown {
			return fmt.Errorf("it knows the type")
		}
		want = "nothing"
	}
	got := "nothing"
	if len(c.pending) > 0 {
		r := c.pending[0]
		c.pending = c.pending[1:]
		c.nonces[r.typeURL] = append(c.nonces[r.typeURL], r.nonce)
		got = describe(r)
	}
	if got != want {
		return fmt.Errorf("it says: %s", got)
	}
	return nil
}

func (c *conversation) reported(words []string) error {
	o := c.source.reported()
	if len(o) == 0 {
		return fmt.Errorf("nothing was reported")
	}
	last, verdict := o[len(o)-1], "ack"
	if last.Refused != "" {
		verdict = "nack"
	}
	if verdict != words[0] || last.Type != shortNames[words[1]] {
		return fmt.Errorf("reported %+v", last)
	}
	return nil
}

func (c *conversation) turn(want string) error {
	got := "none"
	switch {
	case c.last.answer:
		got = "answer"
	case c.last.turn:
		got = "push"
	}
	if got != want {
		return fmt.Errorf("it asks for: %s", got)
	}
	return nil
}

// describe decodes a response as a client does and writes it as scenarios do.
func describe(r *response) string {
	words := []string{""}
	for name, typeURL := range shortNames {
		if typeURL == r.typeURL {
			words[0] = name
		}
	}
	for name, content := range decode(r) {
		words = append(words, name+"="+content)
	}
	slices.Sort(words[1:])
	for _, n := range r.removed {
		words = append(words, "-"+n)
	}
	return strings.Join(words, " ")
}

// decode returns the resources of a response by name, as they are on the wire.
func decode(r *response) map[string]string {
	raw := r.buffers().Materialize()
	var values []*anypb.Any
	if r.delta {
		var m discovery.DeltaDiscoveryResponse
		if err := proto.Unmarshal(raw, &m); err != nil {
			panic(err)
		}
		for _, x := range m.Resources {
			values = append(values, x.Resource)
		}
	} else {
		var m discovery.DiscoveryResponse
		if err := proto.Unmarshal(raw, &m); err != nil {
			panic(err)
		}
		values = m.Resources
	}
	out := map[string]string{}
	for _, v := range values {
		_, name := lastField(v.Value, 1)
		_, content := lastField(v.Value, 99)
		out[string(name)] = string(content)
	}
	return out
}
