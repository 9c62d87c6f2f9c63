package xds

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	if c, err := parse(config); err != nil || c.TLS == nil || len(c.asked) != allKinds {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{}`: "address", `{"address": "server"}`: "address", `{"address": "http://server:1"}`: "address",
		`{"address": "unix://a"}`: "address", `{"address": "u:p@server:1"}`: "address",
		`{"address": "s:1", "tls": {"cert": "a"}}`: "tls.cert", `{"address": "s:1", "tokenFile": "a"}`: "tokenFile",
		`{"address": "s:1", "types": ["VirtualService"]}`:                                                                      "types[0]",
		`{"address": "s:1", "types": ["networking.istio.io/v1/VirtualServce"]}`:                                                "types[0]",
		`{"address": "s:1", "types": ["networking.istio.io/v9/VirtualService"]}`:                                               "types[0]",
		`{"address": "s:1", "types": ["networking.istio.io/v1/VirtualService", "networking.istio.io/v1beta1/VirtualService"]}`: "types[1]",
		`{"address": "s:1", "waitFor": "me"}`:                                                                                  "waitFor",
		`{"address": "s:1", "node": {"type": "ztunnel"}}`:                                                                      "node.type",
		`{"address": "s:1", "node": {"name": "a~b"}}`:                                                                          "node",
		`{"address": "s:1", "wait": "0s"}`:                                                                                     "wait",
		`{"address": "s:1", "keepAlive": "1s"}`:                                                                                "keepAlive",
		`{"address": "s:1", "maxRetry": "1ms"}`:                                                                                "maxRetry",
		`{"address": "s:1", "limits": {"resources": 0}}`:                                                                       "limits.resources",
		`{"address": "s:1", "limits": {"messageBytes": 1}}`:                                                                    "limits.messageBytes",
		`{"address": "s:1", "limits": {"answers": 0}}`:                                                                         "limits.answers",
		`{"address": "s:1", "adress": "s:2"}`:                                                                                  "adress",
		`{"address": "s:1", "limits": {"messageBytes": "much"}}`:                                                               "limits.messageBytes",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v, not of %s", config, err, field)
		}
	}
	for _, config := range []string{
		`{"address": "s:1"}`, `{"address": "[::1]:1", "tokenFile": "a"}`,
		`{"address": "xds://localhost:1", "tokenFile": "a"}`, `{"address": "unix:///a", "tokenFile": "a"}`,
		`{"address": "s:1", "tls": {}, "tokenFile": "a"}`,
	} {
		if _, err := parse([]byte(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// A conversation as the protocol has it: who asks is said once, each type is asked for, answers are
// acknowledged, and what is wrong is refused with the version that is kept.
func TestConversation(t *testing.T) {
	s := newServer(t)
	s.on = empty
	out := s.run(t, map[string]any{"revision": "blue", "node": map[string]any{"name": "pod-1"}})
	eventually(t, "it is in sync", out.inSync)
	first := s.seen(func(r *discovery.DiscoveryRequest) bool { return r.ResponseNonce == "" })
	if len(first) != allKinds || first[0].Node == nil || first[1].Node != nil {
		t.Fatalf("%d first requests: %v", len(first), first)
	}
	node := first[0].Node
	id := strings.Split(node.Id, "~")
	if len(id) != 4 || id[0] != "waypoint" || id[2] != "pod-1.istio-system" || id[3] != "istio-system.svc.cluster.local" ||
		node.Metadata.Fields["GENERATOR"].GetStringValue() != "api" ||
		node.Metadata.Fields["ISTIO_REVISION"].GetStringValue() != "blue" {
		t.Errorf("node %v", node)
	}
	eventually(t, "all are acknowledged", func() bool {
		return len(s.seen(func(r *discovery.DiscoveryRequest) bool {
			return r.ResponseNonce != "" && r.VersionInfo == "1" && r.ErrorDetail == nil
		})) == allKinds
	})
	s.says <- say(entries, "2", object("shop/a", dns("a.example")), object("shop/b", nil))
	eventually(t, "a reply", func() bool { return len(s.seen(replies(entries))) == 2 })
	refused := s.seen(replies(entries))[1]
	if refused.VersionInfo != "1" || refused.ResponseNonce != "2 of "+entries ||
		!strings.Contains(refused.GetErrorDetail().GetMessage(), "ServiceEntry shop/b: body: is missing") {
		t.Errorf("%v", refused)
	}
	if got := out.keys(kinds.ServiceEntry); !slices.Equal(got, []string{"shop/a"}) {
		t.Errorf("rows %v", got)
	}
	// A type that nobody asked for is nobody's.
	s.says <- say("example.com/v1/Thing", "1", object("shop/a", dns("a.example")))
	s.says <- say(entries, "3", object("shop/a", dns("a.example")))
	eventually(t, "it is acknowledged", func() bool { return len(s.seen(replies(entries))) == 3 })
	if last := s.seen(replies(entries))[2]; last.VersionInfo != "3" || last.ErrorDetail != nil ||
		len(s.seen(replies("example.com/v1/Thing"))) > 0 || !strings.Contains(out.log(), "not asked for") {
		t.Errorf("%v\n%s", last, out.log())
	}
	if faults := out.faults(t); len(faults) > 0 {
		t.Error(faults)
	}
}

// A server that says what was refused again, whenever it is refused, is refused ever more seldom;
// others' answers aren't kept waiting.
func TestRefusedAgainAndAgain(t *testing.T) {
	s := newServer(t)
	s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
		if r.TypeUrl == entries {
			return say(entries, "1", object("shop/a", nil)) // as some caches do
		}
		return empty(r)
	}
	out := s.run(t, map[string]any{"maxRetry": "1m"})
	eventually(t, "it is refused thrice", func() bool { return len(s.seen(replies(entries))) >= 3 })
	if faults := out.faults(t); len(faults) != 1 || !out.inSync() {
		t.Error(faults)
	}
	n := len(s.seen(replies(entries)))
	s.says <- say(routes, "2", object("shop/web", &networking.VirtualService{
		Hosts: []string{"web.example"},
		Http:  []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web.example"}}}}},
	}))
	eventually(t, "another type's answer is taken", func() bool { return len(out.keys(kinds.VirtualService)) == 1 })
	if now := len(s.seen(replies(entries))); now > n+2 {
		t.Errorf("%d refusals, and then %d", n, now)
	}
}

const routes = "networking.istio.io/v1/VirtualService"

// What is not answered is shown, and holds the start or not, as the config says.
func TestWaiting(t *testing.T) {
	one := func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
		if r.TypeUrl == entries && r.ResponseNonce == "" {
			return say(entries, "1", object("shop/a", dns("a.example")))
		}
		return nil
	}
	for name, c := range map[string]struct {
		waitFor string
		// there: the server is; on: what it answers.
		there  bool
		on     func(*discovery.DiscoveryRequest) *discovery.DiscoveryResponse
		synced bool
		shows  string
	}{
		"all, and there is none":   {"all", false, nil, false, "the start waits for it (waitFor: all)"},
		"all, and it says nothing": {"all", true, nil, false, "it is connected, and says nothing"},
		"all, and one is answered": {
			"all", true, one, false,
			"the server has not answered " + routes + "; `types` says what it is asked for; the start waits for it (waitFor: all)",
		},
		"all are":                        {"all", true, empty, true, ""},
		"server, and there is none":      {"server", false, nil, false, "the start waits for it (waitFor: server)"},
		"server, and it says nothing":    {"server", true, nil, false, "it is connected, and says nothing"},
		"server, and one is answered":    {"server", true, one, true, "the server has not answered " + routes + "; `types` says what it is asked for"},
		"nothing, and there is none":     {"nothing", false, nil, true, "the server does not answer: Unavailable: "},
		"nothing, and it says nothing":   {"nothing", true, nil, true, "it is connected, and says nothing"},
		"nothing, and one is answered":   {"nothing", true, one, true, "the server has not answered " + routes},
		"nothing, and all are answered.": {"nothing", true, empty, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.on = c.on
			if !c.there {
				s.stop()
			}
			began := time.Now()
			wait := 1500 * time.Millisecond // longer than the pause between two tries
			if c.shows == "" {
				wait = time.Hour // it is not waited for
			}
			out := s.run(t, map[string]any{"waitFor": c.waitFor, "wait": wait.String()})
			if c.synced {
				eventually(t, "it is in sync", out.inSync)
				if took := time.Since(began); c.shows != "" && took < wait {
					t.Errorf("in sync after %v", took)
				}
			}
			eventually(t, "it shows "+c.shows, func() bool {
				return c.shows == "" && len(out.faults(t)) == 0 || c.shows != "" && strings.Contains(strings.Join(out.faults(t), "\n"), c.shows)
			})
			for part := range strings.SplitSeq(c.shows, "; ") { // a line's why, and its hint
				if !strings.Contains(out.log(), part) {
					t.Errorf("no %q in the log: %s", part, out.log())
				}
			}
			if !c.synced && out.inSync() {
				t.Error("it is in sync")
			}
			// Whatever was missing comes, and is taken.
			if !c.there {
				s.with(func() { s.on = empty })
				s.again(t)
			} else {
				s.with(func() { s.on = empty })
				eventually(t, "a stream", func() bool { return s.streamed() > 0 })
				s.cut(status.Error(codes.Unavailable, "a restart"))
			}
			eventually(t, "it is in sync, and all is well", func() bool { return out.inSync() && len(out.faults(t)) == 0 })
		})
	}
}

// A server that goes takes nothing away; what it says when it is back counts.
func TestAway(t *testing.T) {
	s := newServer(t)
	s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
		if r.TypeUrl == entries && r.ResponseNonce == "" {
			return say(entries, "1", object("shop/a", dns("a.example")), object("shop/b", dns("b.example")))
		}
		return empty(r)
	}
	out := s.run(t, map[string]any{"wait": "300ms"})
	eventually(t, "it is in sync", out.inSync)
	s.cut(status.Error(codes.Unavailable, "max age"))
	eventually(t, "another stream", func() bool { return s.streamed() == 2 })
	s.stop()
	eventually(t, "it is shown", func() bool {
		return strings.Contains(strings.Join(out.faults(t), "\n"), "the server does not answer: Unavailable")
	})
	if faults := out.faults(t); len(faults) != 1 || !strings.Contains(faults[0], "what is known stays, and it is tried again") {
		t.Error(faults)
	}
	if got := out.keys(kinds.ServiceEntry); len(got) != 2 {
		t.Errorf("rows %v", got)
	}
	// It is back, and has forgotten a kind: what is known of that stays, and is shown to be old.
	s.with(func() {
		s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
			if r.TypeUrl == entries {
				return nil
			}
			return empty(r)
		}
	})
	s.again(t)
	eventually(t, "what is not answered is shown", func() bool {
		faults := out.faults(t)
		return len(faults) == 1 && strings.Contains(faults[0], "the server has not answered "+entries+"; what is known of it stays")
	})
	s.says <- say(entries, "1", object("shop/b", dns("b.example")))
	eventually(t, "what it says counts", func() bool {
		return slices.Equal(out.keys(kinds.ServiceEntry), []string{"shop/b"}) && len(out.faults(t)) == 0
	})
}

// An answer larger than may be ends the connection, which is shown, and nothing is lost; it is not
// asked for without end.
func TestTooLarge(t *testing.T) {
	s := newServer(t)
	s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
		if r.TypeUrl == entries && r.ResponseNonce == "" {
			return say(entries, "1", object("shop/a", large()))
		}
		return nil
	}
	out := s.run(t, map[string]any{"limits": map[string]any{"messageBytes": 1 << 16}})
	eventually(t, "it is shown", func() bool {
		return strings.Contains(strings.Join(out.faults(t), "\n"), "ResourceExhausted: grpc: received message larger than max")
	})
	if n := s.streamed(); n > 10 {
		t.Errorf("%d streams", n)
	}
}

// The token is sent, read anew each time, and is in no text that anybody sees, whatever the server
// says.
func TestToken(t *testing.T) {
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "token")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.refuse, s.accept, s.on = status.Error(codes.Unauthenticated, "the token s3cr3t-token is unknown"), "Bearer an0ther", empty
	out := s.run(t, map[string]any{"tokenFile": file})
	eventually(t, "a missing file is shown", func() bool { return strings.Contains(strings.Join(out.faults(t), "\n"), "tokenFile: open ") })
	put("s3cr3t token\n")
	eventually(t, "a token that is none is shown", func() bool { return strings.Contains(strings.Join(out.faults(t), "\n"), "has no token") })
	put("s3cr3t-token\n")
	eventually(t, "the refusal is shown", func() bool {
		return strings.Contains(strings.Join(out.faults(t), "\n"), "Unauthenticated: the token [secret] is unknown")
	})
	put("an0ther\n")
	eventually(t, "it is in sync", out.inSync)
	s.with(func() {
		if got := s.headers.Get("authorization"); !slices.Equal(got, []string{"Bearer an0ther"}) {
			t.Errorf("authorization %q", got)
		}
	})
	if all := out.log() + strings.Join(out.faults(t), ""); strings.Contains(all, "s3cr3t") || strings.Contains(all, "an0ther") {
		t.Error(all)
	}
}

// More answers than may be are read at a pace.
func TestPace(t *testing.T) {
	s := newServer(t)
	s.on = empty
	out := s.run(t, map[string]any{"types": []string{entries}, "limits": map[string]any{"answers": 10}})
	eventually(t, "it is in sync", out.inSync)
	began := time.Now()
	for range 40 {
		s.says <- say(entries, "1")
	}
	eventually(t, "all are acknowledged", func() bool { return len(s.seen(replies(entries))) == 41 })
	if took := time.Since(began); took < 1500*time.Millisecond { // 20 at once, 10 a second
		t.Errorf("41 answers were read in %v", took)
	}
}

func TestDelay(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: 100 * time.Millisecond, 3: 800 * time.Millisecond, 30: 30 * time.Second, 1000: 30 * time.Second} {
		if got := delay(tries, firstRetry, 30*time.Second); got < want/2 || got > want {
			t.Errorf("%d: %v", tries, got)
		}
	}
}
