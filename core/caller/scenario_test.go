package caller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"google.golang.org/grpc/status"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about callers and the
// authenticators that are asked about them. Lines, with # comments:
//
//	authenticator NAME [call=DURATION] [progress=DURATION] [common=NAME,…] [headers=NAME,…]
//	    declares one, which says which headers it is shown, and begins its session
//	caller WHO [HEADER=VALUE …]   somebody calls: until somebody knows, authenticators are to be asked
//	asks NAME [HEADER=VALUE …]    whom the core asks about the last caller now, and what it shows
//	away                          who was to be asked has no session
//	NAME accepts [IDENTITY …]     the answer to the last caller's question, with facts (NAME=VALUE); NAME refuses REASON, NAME fails REASON
//	again NAME known|late|unknown the same answer once more, or to a question that was put to another: what the core counts it as
//	later DURATION                time goes by; lost DURATION: so much of it the plugins could not use
//	progress NAME                 it shows a sign of life
//	late                          the last question was not answered in time: nobody waits any more
//	ends NAME [REASON]            the core ends the session, that is what it says; nobody but a plugin that hangs is ended
//	leaves NAME N                 the session ends, with N questions open
//	told IDENTITY …|CODE: TEXT    what the caller is told
//	owes NAME N                   so many questions are overdue
func TestScenarios(t *testing.T) { archive.Play(t, play) }

// talk is what callers, authenticators and the core have said.
type talk struct {
	pending  *Pending[string]
	of       []Authenticator
	now      deadline.Moment
	progress map[string]time.Time
	chain    *Chain
	err      error
	shown    Credentials
	last     *pb.Authenticate // the last question, and whose
	asked    Authenticator
	ended    map[string]error
}

func play(t *testing.T, script string) {
	p := &talk{pending: NewPending[string](), now: deadline.Moment{At: time.Unix(0, 0)}, progress: map[string]time.Time{}, ended: map[string]error{}}
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(p.ended) > 0 && words[0] != "ends" {
			t.Fatalf("line %d: before that the core ends %v", i+1, p.ended)
		}
		if err := p.line(words[0], words[1:]); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
	if len(p.ended) > 0 {
		t.Fatalf("at the end: the core ends %v", p.ended)
	}
}

func (p *talk) line(verb string, words []string) error {
	rest := strings.Join(words, " ")
	switch verb {
	case "authenticator":
		return p.declare(words)
	case "caller":
		p.shown = Credentials{Headers: pairs(words[1:])}
		p.chain, p.err = Begin(p.shown, slices.Clone(p.of))
	case "asks":
		return p.asks(rest)
	case "away":
		p.chain.Heard(Judge(nil, errors.New("is away"), p.shown))
	case "again":
		known, late := p.pending.Answered(words[0], p.last.Id, p.now)
		return same(cmp.Or(map[bool]string{true: "late"}[late], map[bool]string{true: "known"}[known], "unknown"), words[1])
	case "later", "lost":
		d, err := time.ParseDuration(rest)
		p.now.At = p.now.At.Add(d)
		if verb == "lost" {
			p.now.Lost += d
		}
		return err
	case "progress":
		p.progress[rest] = p.now.At
	case "late":
		if why := p.pending.Unanswered(p.last.Id, p.asked.Asked, p.now, p.progress[p.asked.Name]); why != nil {
			p.ended[p.asked.Name] = why
		}
		p.chain.Heard(Judge(nil, errors.New("did not answer"), p.shown))
	case "ends":
		why := p.ended[words[0]]
		delete(p.ended, words[0])
		return same(fmt.Sprint(why), strings.Join(words[1:], " "))
	case "leaves":
		return same(fmt.Sprint(words[0], " ", len(p.pending.Left(words[0]))), rest)
	case "told":
		return same(p.told(), rest)
	case "owes":
		n, _ := p.pending.Overdue(words[0])
		if (n > 0) != p.pending.Owes(words[0]) {
			return errors.New("it owes what is not overdue, or the other way round")
		}
		return same(fmt.Sprint(words[0], " ", n), rest)
	default:
		return p.answers(verb, words)
	}
	return nil
}

// declare reads an authenticator.
func (p *talk) declare(words []string) (err error) {
	a := Authenticator{Asked: Asked{Name: words[0]}, Common: CommonOf(nil)}
	for k, v := range pairs(words[1:]) {
		var wrong error
		switch k {
		case "call":
			a.Call, wrong = time.ParseDuration(v)
		case "progress":
			a.Progress, wrong = time.ParseDuration(v)
		case "common":
			a.Common = CommonOf(&pb.Ready{Headers: &pb.HeaderNames{Names: strings.Split(v, ",")}})
		case "headers":
			a.Headers = strings.Split(v, ",")
		default:
			wrong = fmt.Errorf("what is %s?", k)
		}
		err = errors.Join(err, wrong)
	}
	p.of = append(p.of, a)
	return err
}

// asks has the core put the next question.
func (p *talk) asks(want string) error {
	a, more := p.chain.Next()
	if !more {
		return errors.New("it asks nobody")
	}
	p.asked, p.last = a, a.Question(p.shown)
	got := a.Name
	for _, h := range slices.Sorted(maps.Keys(p.last.Headers)) {
		got += " " + h + "=" + p.last.Headers[h]
	}
	id, why := p.pending.Ask(a.Name, p.last.Size(), p.now)
	if why != "" {
		return errors.New(why)
	}
	p.last.Id = id
	return same(got, want)
}

// answers has an authenticator answer the last question.
func (p *talk) answers(name string, words []string) error {
	m := &pb.Caller{}
	switch text := strings.Join(words[1:], " "); words[0] {
	case "accepts":
		m.Facts = map[string]string{}
		for _, w := range words[1:] {
			if k, v, fact := strings.Cut(w, "="); fact {
				m.Facts[k] = v
			} else {
				m.Identities = append(m.Identities, w)
			}
		}
	case "refuses":
		m.Refusal = text
	case "fails":
		m.Failure = text
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	if known, late := p.pending.Answered(name, p.last.Id, p.now); !known || late {
		return errors.New("nobody waits for that")
	}
	p.chain.Heard(Judge(m, nil, p.shown))
	return nil
}

func (p *talk) told() string {
	if p.err != nil {
		return describe(p.err)
	}
	if a, more := p.chain.Next(); more {
		return "nothing: it would ask " + a.Name
	}
	is, err := p.chain.Result()
	if err != nil {
		return describe(err)
	}
	told := is.Identities
	for _, k := range slices.Sorted(maps.Keys(is.Facts)) {
		told = append(told, k+"="+is.Facts[k])
	}
	return strings.Join(told, " ")
}

func describe(err error) string {
	return fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
}

func pairs(words []string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		all[k] = v
	}
	return all
}

func same(got, want string) error {
	if got != want {
		return fmt.Errorf("it is: %s", got)
	}
	return nil
}

func TestCredentialsFitIntoAMessage(t *testing.T) {
	if MaxCredentials > carrier.MaxMessage/2 || MaxOwed >= carrier.InitialCredit {
		t.Error("the limits are at odds")
	}
}
