package calls_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/calls"
	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about what plugins are asked and
// who waits for the answer, in the words of package parttest (World, Declared, Ready, Told). WHO is
// anybody; each has an identity and an address of that name. In texts C*N at the end is the letter
// C so many times, ~ a space, and \n and \e are what they are in Go. Lines, with # comments:
//
//	PLUGIN is KIND … [wants HEADER …], PLUGIN joins …, PLUGIN leaves, PLUGIN dozes; PLUGIN is tried as NAME, NAME joins …
//	WHO asks [HEADER=VALUE] [N times]    wants to be known
//	WHO calls METHOD TEXT [plain] [within DURATION] [N times]    POST:METHOD: a webhook; plain: without an identity; the core calls for itself
//	WHO explains PLUGIN TYPE VIEW NAME [within DURATION]
//	WHO gives up                  waits no more for anything
//	WHO hears TEXT | CODE: WHY | nothing    what came of the oldest; WHO heard N: how many are over, since it was asked last
//	PLUGIN knows ID IDENTITY …, PLUGIN refuses ID WHY, PLUGIN fails ID WHY [limit NAME]
//	PLUGIN returns ID TEXT, PLUGIN denies ID CODE WHY, PLUGIN says ID TABLE KEY | but WHY
//	PLUGIN has N                  so many questions have come to it since it was asked last; PLUGIN returns all, PLUGIN refuses all: of these
//	undelivered PLUGIN ID caller|call WHY    a question was too large to be sent
//	PLUGIN overdue N, PLUGIN still owes yes|no: answers
//	kept N                        how much is kept of questions, and of those who wait
//	offers METHOD yes|no, perhaps yes|no
//	headers HEADER …              those that are asked for beside the common ones
//	differ NAME WHO, unknown without PLUGIN    somebody finds out how a rival's verdicts differ, or whom nobody else knows
//	PROXY connects as WHO         whose credentials are kept
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	t      *testing.T
	mu     sync.Mutex
	calls  *calls.Calls
	rivals map[string]*state.Plugin
	ctx    map[string]context.Context
	giveUp map[string]context.CancelFunc

	results sync.Mutex
	over    map[string][]string // what came of what somebody waited for
	in      map[string][]*pb.FromCore
}

func play(t *testing.T, script string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			World: parttest.New(), t: t, rivals: map[string]*state.Plugin{}, ctx: map[string]context.Context{},
			giveUp: map[string]context.CancelFunc{}, over: map[string][]string{}, in: map[string][]*pb.FromCore{},
		}
		w.Begin(state.New(w.Config()))
		w.State.Clock.Set(time.Now())
		w.calls = calls.New(w, w.State)
		defer func() {
			for _, cancel := range w.giveUp {
				cancel()
			}
		}()
		w.Play(t, script, func(words []string) (bool, error) {
			known, err := w.line(words)
			synctest.Wait()
			return known, err
		})
	})
}

// Lock takes the lock, which says what time it is.
func (w *world) Lock() {
	w.mu.Lock()
	w.State.Clock.Set(time.Now())
}

// Unlock gives it back.
func (w *world) Unlock() { w.mu.Unlock() }

func (w *world) line(words []string) (known bool, err error) {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "later":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		synctest.Wait()
		w.Lock() // which sets the clock
		defer w.Unlock()
		return true, err
	case "kept":
		w.Lock()
		defer w.Unlock()
		return true, archive.Expect(fmt.Sprint(w.calls.Size()), rest)
	case "offers":
		yes, perhaps := w.calls.Offers(words[1])
		return true, archive.Expect(archive.YesNo(yes)+", perhaps "+archive.YesNo(perhaps), strings.Join(words[2:], " "))
	case "headers":
		got := slices.DeleteFunc(w.calls.WantedHeaders(), func(h string) bool { return slices.Contains(caller.CommonHeaders(), h) })
		return true, archive.Expect(parttest.List(got, " ", "none"), rest)
	case "undelivered":
		w.Lock()
		defer w.Unlock()
		id, m := number(words[2]), &pb.FromCore{}
		if words[3] == "caller" {
			m.Authenticate = &pb.Authenticate{Id: id}
		} else {
			m.Call = &pb.Call{Id: id}
		}
		w.calls.Undelivered(w.State.Roster.Session(words[1]), m, errors.New(strings.Join(words[4:], " ")))
		return true, nil
	case "differ":
		k := w.rivals[words[1]]
		w.begin(words[2], 0, func(ctx context.Context) string {
			verdicts, losses := w.calls.Differ(ctx, k.Authenticator(), func() *state.Session { return k.Session })
			return parttest.List(verdicts, "; ", "nothing") + " | " + parttest.List(losses, "; ", "nothing")
		})
		return true, nil
	case "unknown":
		k := w.State.Roster.Plugins[words[2]]
		w.begin(words[3], 0, func(ctx context.Context) string {
			return parttest.List(w.calls.UnknownWithout(ctx, k), "; ", "nothing")
		})
		return true, nil
	}
	if len(words) < 2 {
		return false, nil
	}
	if known, err := w.who(words[0], words[1], words[2:]); known {
		return true, err
	}
	return w.somebody(words)
}

func number(word string) uint64 {
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

// begin has somebody wait for something, until it gives up or its time is over (0: it has no end).
func (w *world) begin(who string, within time.Duration, what func(context.Context) string) {
	ctx := w.ctx[who]
	if ctx == nil {
		ctx, w.giveUp[who] = context.WithCancel(context.Background())
		w.ctx[who] = ctx
	}
	cancel := context.CancelFunc(func() {})
	if within > 0 {
		ctx, cancel = context.WithTimeout(ctx, within)
	}
	go func() {
		defer cancel()
		came := what(ctx)
		w.results.Lock()
		defer w.results.Unlock()
		w.over[who] = append(w.over[who], came)
	}()
	synctest.Wait()
}

func wrong(err error) string {
	if s, ok := status.FromError(err); ok {
		words := s.Message()
		if n := len(words); n > 500 {
			words = fmt.Sprintf("%s… of %d bytes", words[:20], n)
		}
		return s.Code().String() + ": " + words
	}
	return err.Error()
}

// text writes out what ends with so many of one letter.
func text(words string) string {
	if what, times, repeated := strings.Cut(words, "*"); repeated {
		last := len(what) - 1
		return what[:last] + strings.Repeat(what[last:], int(number(times)))
	}
	return words
}

// who does what somebody does who waits for answers.
func (w *world) who(who, verb string, words []string) (known bool, err error) {
	switch verb {
	case "asks":
		shown := caller.Credentials{RemoteAddress: who + ":1", Headers: map[string]string{}}
		times := uint64(1)
		if n := len(words); n > 1 && words[n-1] == "times" {
			times, words = number(words[n-2]), words[:n-2]
		}
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			shown.Headers[key] = text(strings.ReplaceAll(value, "~", " "))
		}
		for range times {
			w.begin(who, 0, func(ctx context.Context) string {
				is, err := w.calls.Authenticate(ctx, shown)
				if err != nil {
					return wrong(err)
				}
				return strings.Join(is.Identities, " ")
			})
		}
	case "calls":
		return true, w.call(who, words)
	case "explains":
		return true, w.explain(who, words)
	case "gives":
		w.giveUp[who]()
		delete(w.ctx, who)
	case "hears", "heard":
		w.results.Lock()
		defer w.results.Unlock()
		over := w.over[who]
		if verb == "heard" {
			w.over[who] = nil
			return true, archive.Expect(fmt.Sprint(len(over)), words[0])
		}
		if len(over) == 0 {
			return true, archive.Expect("nothing", strings.Join(words, " "))
		}
		w.over[who] = over[1:]
		return true, archive.Expect(over[0], strings.Join(words, " "))
	default:
		return false, nil
	}
	return true, nil
}

func (w *world) call(who string, words []string) (err error) {
	within, times := time.Duration(0), uint64(1)
	plain := slices.Contains(words, "plain")
	for i, word := range words {
		switch word {
		case "within":
			if within, err = time.ParseDuration(words[i+1]); err != nil {
				return err
			}
		case "times":
			times = number(words[i-1])
		}
	}
	for range times {
		m := &pb.Call{
			Method: strings.Replace(words[0], "POST:", pb.Webhook, 1), Request: []byte(text(words[1])), Core: who == "core", RemoteAddress: who + ":1",
		}
		if !plain {
			m.Identities = []string{who}
		}
		w.begin(who, within, func(ctx context.Context) string {
			response, err := w.calls.Call(ctx, m)
			if err != nil {
				return wrong(err)
			}
			return string(response)
		})
	}
	return nil
}

func (w *world) explain(who string, words []string) error {
	within := time.Duration(0)
	if len(words) > 5 {
		var err error
		if within, err = time.ParseDuration(words[5]); err != nil {
			return err
		}
	}
	w.Lock()
	s := w.State.Roster.Session(words[0])
	w.Unlock()
	if s == nil {
		return errors.New("it has no session")
	}
	w.begin(who, within, func(ctx context.Context) string {
		because, err := w.calls.Explain(ctx, s, &pb.Explain{Type: words[1], View: number(words[2]), Name: words[3]})
		if err != nil {
			return err.Error()
		}
		return because.Rows[0].Table + " " + because.Rows[0].Key
	})
	return nil
}

// somebody does what begins with the name of a plugin or of a proxy.
func (w *world) somebody(words []string) (known bool, err error) {
	w.Lock()
	defer w.Unlock()
	name, verb := words[0], words[1]
	switch {
	case verb == "is" && words[2] == "tried":
		k := w.State.Roster.Plugins[name]
		w.rivals[words[4]] = state.NewPlugin(k.Expected, k.Shard, w.State.Clock.Now())
		w.State.Roster.Compete(w.rivals[words[4]], w.State.Roster.Rules)
		return true, nil
	case verb == "is":
		var headers []string
		if i := slices.Index(words, "wants"); i > 0 {
			headers, words = words[i+1:], words[:i]
		}
		e, err := w.Declared(name, words[2:])
		if err == nil {
			e.Headers = headers
			w.State.Roster.Declare(state.NewPlugin(e, state.NewShard(e), w.State.Clock.Now()))
		}
		return true, err
	case verb == "connects":
		conn, err := w.Connect(name, nil)
		if err == nil && len(words) > 3 {
			conn.Speaks(state.Caller{Credentials: &caller.Credentials{RemoteAddress: words[3] + ":1"}})
		}
		return true, err
	case w.rivals[name] != nil:
		return w.plugin(name, w.rivals[name], verb, words[2:])
	case w.State.Roster.Plugins[name] != nil:
		return w.plugin(name, w.State.Roster.Plugins[name], verb, words[2:])
	}
	return false, nil
}

func (w *world) plugin(name string, k *state.Plugin, verb string, words []string) (known bool, err error) {
	switch verb {
	case "joins":
		r := w.Ready(k, words)
		for i, m := range r.Methods {
			r.Methods[i] = strings.Replace(m, "POST:", pb.Webhook, 1)
		}
		k.Says(r)
		k.Doze(false)
		k.Joins(w.Session(k, r))
		if w.rivals[name] == nil {
			w.calls.IsAwake(k.Name())
		}
		return true, nil
	case "leaves":
		s := k.Session
		k.Leaves(w.State.Clock.Now())
		w.calls.Abandon(s)
		return true, nil
	case "dozes":
		k.Doze(true)
		return true, nil
	case "overdue":
		n, _ := w.calls.Overdue(k.Session)
		return true, archive.Expect(fmt.Sprint(n), words[0])
	case "still":
		return true, archive.Expect(archive.YesNo(w.calls.Owes(k.Session)), words[1])
	case "has":
		w.in[name] = k.Session.Out.Drain()
		return true, archive.Expect(fmt.Sprint(len(w.in[name])), words[0])
	case "heard":
		w.Heard(k.Session, true)
		return true, nil
	case "told", "ends":
		return true, w.Plugin(k, verb, strings.Join(words, " "))
	}
	if words[0] == "all" {
		for _, m := range w.in[name] {
			if m.Call != nil {
				w.calls.Handle(k.Session, m.Call.Id, &pb.FromPlugin{Called: &pb.Called{Id: m.Call.Id, Response: m.Call.Request}})
			} else {
				w.calls.Handle(k.Session, m.Authenticate.Id, &pb.FromPlugin{Caller: &pb.Caller{Id: m.Authenticate.Id, Refusal: "no"}})
			}
		}
		w.in[name] = nil
		return true, nil
	}
	return true, w.answer(k, verb, number(words[0]), words[1:])
}

// answer has a plugin answer a question.
func (w *world) answer(k *state.Plugin, verb string, id uint64, words []string) error {
	m := &pb.FromPlugin{}
	rest := strings.NewReplacer(`\n`, "\n", `\e`, "\x1b").Replace(strings.Join(words, " "))
	switch verb {
	case "knows":
		m.Caller = &pb.Caller{Id: id, Identities: words}
	case "refuses":
		m.Caller = &pb.Caller{Id: id, Refusal: rest}
	case "fails":
		m.Caller = &pb.Caller{Id: id, Identities: []string{"anybody"}, Failure: rest}
		if why, limit, named := strings.Cut(rest, " limit "); named {
			m.Caller.Failure, m.Caller.Limit = why, limit
		}
	case "returns":
		m.Called = &pb.Called{Id: id, Response: []byte(rest)}
	case "denies":
		code, _ := strconv.ParseUint(words[0], 10, 32)
		m.Called = &pb.Called{Id: id, Code: uint32(codes.Code(code)), Message: text(strings.Join(words[1:], "\n"))}
	case "says":
		because := &pb.Because{Id: id}
		if words[0] == "but" {
			because.Error = strings.Join(words[1:], " ")
		} else {
			because.Rows = []*pb.RowName{{Table: words[0], Key: words[1]}}
		}
		w.calls.HandleBecause(k.Session, because)
		return nil
	default:
		return fmt.Errorf("a plugin does not %s", verb)
	}
	w.calls.Handle(k.Session, id, m)
	return nil
}
