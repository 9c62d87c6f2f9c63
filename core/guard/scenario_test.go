package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/encoding/protowire"
)

// typeX names resources of typeC.
const typeX = "type.googleapis.com/test.X"

// TestScenarios plays testdata/*.txtar: each file of an archive is about sources, and the proxies
// that see what a generator makes of their rows. Lines, with # comments:
//
//	source NAME [apply|N%]      declares a source, with a guard of its own
//	NAME has TABLE KEY[=PAYLOAD] …    rows that it says, and NAME loses TABLE KEY …; they are committed
//	PROXY sees NAME …           what a proxy is shown of clusters from now on, once it is; names NAME …: of what names clusters
//	PROXY routes NAME …         which clusters its routes lead to
//	PROXY asks NAME …           for which clusters it asks, instead of for all
//	PROXY goes
//	shown | back                whether that is shown, or rows are taken back; with the state of rows that follows committed
//	raw shown                   the same, before all is said of what the rows lead to
//	seen [again]                proxies see all that was committed; again: something that was held is let go for another revision
//	approve, approve next       what is shown until all is seen, or the revision that begins next, is let through
//	begins                      a revision begins
//	held NAME REASON; …         what is held of a source, or of the generator; nothing
//	said WHAT                   what is to be told: held NAME, released NAME, through NAME; nothing
//	PROXY has NAME …            which clusters a proxy has
//	rows NAME TABLE KEY …       what is served of a source
//	later DURATION              time goes by
func TestScenarios(t *testing.T) { archive.Play(t, play) }

// proxy is a stream.
type proxy struct {
	id      string
	wish    placement.Wish
	visible map[string]*view.Snapshot
}

func (p *proxy) Visible(typeURL string) *view.Snapshot { return p.visible[typeURL] }

func (p *proxy) Wish(typeURL string) placement.Wish {
	if typeURL == typeC {
		return p.wish
	}
	return placement.Wish{Wildcard: true}
}

func (p *proxy) Label(string) string { return "of " + p.id }

func (p *proxy) After(typeURL string) string { return map[string]string{typeC: typeX}[typeURL] }

func (p *proxy) Generator(string) string { return "istio" }

type scene struct {
	env     *environment.Environment
	sources []*environment.Shard
	guards  map[string]*Guard
	proxies map[string]*proxy
	next    Shown[*proxy]
	holds   *Holds[*proxy]
	now     time.Time
}

func play(t *testing.T, script string) {
	s := &scene{
		env: environment.New(), guards: map[string]*Guard{}, proxies: map[string]*proxy{}, next: Shown[*proxy]{},
		holds: NewHolds[*proxy](), now: time.Unix(0, 0),
	}
	s.env.Unseen.Seen()
	archive.Lines(t, script, s.line)
}

func (s *scene) line(words []string) error {
	if len(words) > 1 {
		if done, err := s.of(words[0], words[1], words[2:]); done {
			return err
		}
	}
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "source":
		g := Default()
		if percent, ok := strings.CutSuffix(rest, "%"); ok {
			n, err := strconv.Atoi(strings.Fields(percent)[1])
			if err != nil {
				return err
			}
			g.MaxRemoved.Percent = n
		}
		s.sources = append(s.sources, &environment.Shard{Name: words[1], Order: len(s.sources)})
		if s.guards[words[1]] = &g; len(words) > 2 && words[2] == "apply" {
			s.guards[words[1]] = nil
		}
	case "shown", "back", "raw":
		return s.judge(words[0] != "raw", words[len(words)-1])
	case "seen":
		return archive.Expect(map[bool]string{true: "again"}[s.holds.AllSeen(s.env, s.sources, s.now)], rest)
	case "approve":
		if rest == "next" {
			s.holds.ApproveNext(false)
		} else {
			s.holds.Approve()
		}
	case "begins":
		s.holds.Begin()
		s.env.Pending.Commit(true, nil)
	case "over":
		s.holds.Over(func(p *proxy) bool { return s.proxies[p.id] != p }, func(plugin string) int { return s.env.Held.Rows(s.source(plugin)) })
	case "held":
		h := s.holds.Of(words[1])
		if h == nil {
			return archive.Expect("nothing", strings.Join(words[2:], " "))
		}
		return archive.Expect(strings.Join(h.Reasons, "; "), strings.Join(words[2:], " "))
	case "said":
		var said []string
		for _, e := range s.holds.Events() {
			what := map[What]string{Held: "held", Released: "released", Through: "through"}[e.What]
			said = append(said, what+" "+strings.Join(e.Plugins, " "))
		}
		return archive.Expect(cmp.Or(strings.Join(said, ", "), "nothing"), rest)
	case "rows":
		keys := slices.Sorted(maps.Keys(s.env.Pending.Shard(s.source(words[1]))[words[2]]))
		return archive.Expect(strings.Join(keys, " "), strings.Join(words[3:], " "))
	case "later":
		d, err := time.ParseDuration(rest)
		s.now = s.now.Add(d)
		return err
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

// of does what begins with the name of a source or of a proxy.
func (s *scene) of(name, verb string, words []string) (done bool, err error) {
	src := s.source(name)
	switch {
	case src != nil && verb == "has":
		var rows []*pb.Row
		for _, word := range words[1:] {
			key, payload, _ := strings.Cut(word, "=")
			rows = append(rows, &pb.Row{Key: key, Payload: []byte(payload)})
		}
		s.env.Pending.Update(src, words[0], rows, nil)
		s.env.Pending.Commit(false, nil)
	case src != nil && verb == "loses":
		s.env.Pending.Update(src, words[0], nil, words[1:])
		s.env.Pending.Commit(false, nil)
	case verb == "sees":
		s.next.Put(s.proxy(name), typeC, snapshot(typeC, words))
	case verb == "names":
		s.next.Put(s.proxy(name), typeX, snapshot(typeX, words))
	case verb == "routes":
		var bodies []*view.Body
		for _, n := range words {
			bodies = append(bodies, view.NewBody(leadTo[0], n, protowire.AppendString(nil, n), 0))
		}
		s.next.Put(s.proxy(name), leadTo[0], view.NewSnapshot(view.NewSet(bodies), nil, true))
	case verb == "asks":
		s.proxy(name).wish = placement.Wish{Names: slices.Sorted(slices.Values(words))}
	case verb == "goes":
		delete(s.next, s.proxies[name])
		delete(s.proxies, name)
	case verb == "has":
		var names []string
		for _, b := range s.proxy(name).visible[typeC].Bodies() {
			names = append(names, b.Name())
		}
		slices.Sort(names)
		return true, archive.Expect(strings.Join(names, " "), strings.Join(words, " "))
	default:
		return false, nil
	}
	return true, nil
}

func (s *scene) source(name string) *environment.Shard {
	for _, src := range s.sources {
		if src.Name == name {
			return src
		}
	}
	return nil
}

func (s *scene) proxy(id string) *proxy {
	if s.proxies[id] == nil {
		s.proxies[id] = &proxy{id: id, wish: placement.Wish{Wildcard: true}, visible: map[string]*view.Snapshot{}}
	}
	return s.proxies[id]
}

func snapshot(typeURL string, names []string) *view.Snapshot {
	var bodies []*view.Body
	for _, n := range names {
		bodies = append(bodies, view.NewBody(typeURL, n, []byte(n), 0))
	}
	return view.NewSnapshot(view.NewSet(bodies), nil, true)
}

// judge shows what proxies are to see, unless rows are taken back.
func (s *scene) judge(mature bool, want string) error {
	back := s.holds.Judge(Scene[*proxy]{
		Next: s.next, Connected: len(s.proxies), Mature: mature, Env: s.env,
		Read: func() map[string]bool {
			return map[string]bool{environment.Services: true, environment.Endpoints: true, "routes": true, "rules": true}
		},
		Sources: func() []*environment.Shard { return s.sources },
		Guard:   func(plugin string) *Guard { return s.guards[plugin] },
	}, s.now)
	if back {
		s.env.Pending.Commit(true, nil)
		clear(s.next)
		return archive.Expect("back", want)
	}
	frozen := s.holds.Frozen()
	for p, types := range s.next {
		if !frozen[p] {
			maps.Copy(p.visible, types)
		}
	}
	clear(s.next)
	return archive.Expect("shown", want)
}
