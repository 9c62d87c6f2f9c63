package parttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Declared is a plugin that is declared after those before it, of a kind and with what its words
// say: optional, asked (it starts on demand), skips, blocks, applies (it may lose all), drops
// DURATION, priority N, and limits: rows N, call DURATION, revision DURATION, progress DURATION.
func (w *World) Declared(name string, words []string) (e state.Expected, err error) {
	e = state.Expected{Name: name, Order: w.order, Kind: pb.KindOf(words[0])}
	if e.Kind == pb.KindUnspecified {
		return e, fmt.Errorf("there is no kind %s", words[0])
	}
	w.order++
	durations := map[string]*time.Duration{
		"drops": &e.DropAfter, "call": &e.Limits.Call, "revision": &e.Limits.Revision, "progress": &e.Limits.Progress,
	}
	flags := map[string]*bool{
		"optional": &e.Optional, "asked": &e.OnDemand, "skips": &e.Skips, "blocks": &e.Blocks, "applies": &e.LossApplies,
	}
	numbers := map[string]*int{"priority": &e.Priority, "rows": &e.Limits.Rows, "bodies": &e.Limits.Bodies}
	for i := 1; i < len(words) && err == nil; i++ {
		word := words[i]
		switch {
		case flags[word] != nil:
			*flags[word] = true
			continue
		case i+1 == len(words):
			return e, fmt.Errorf("nobody is declared %s", word)
		case durations[word] != nil:
			*durations[word], err = time.ParseDuration(words[i+1])
		case numbers[word] != nil:
			*numbers[word], err = strconv.Atoi(words[i+1])
		default:
			return e, fmt.Errorf("nobody is declared %s", word)
		}
		i++
	}
	return e, err
}

// Ready is what a plugin says of itself by its words: derives, reports, blames; reads TABLE … or
// TABLE@sources …, publishes TABLE …, offers TYPE …, answers METHOD …, writes TABLE …, clients KEY
// …, health TYPE …. The word again alone: what it said before.
func (w *World) Ready(k *state.Plugin, words []string) *pb.Ready {
	if slices.Equal(words, []string{"again"}) {
		return w.ready[k.Name()]
	}
	r := &pb.Ready{Kind: k.Kind()}
	flags := map[string]*bool{"derives": &r.Derives, "reports": &r.Reports, "blames": &r.Blame}
	lists := map[string]*[]string{
		"publishes": &r.Publishes, "answers": &r.Methods, "writes": &r.Writes, "clients": &r.Clients, "health": &r.ClientReports,
	}
	verb := ""
	for _, word := range words {
		switch {
		case flags[word] != nil:
			*flags[word] = true
		case lists[word] != nil, word == "reads", word == "offers":
			verb = word
		case verb == "reads":
			table, sources := strings.CutSuffix(word, "@sources")
			r.Reads = append(r.Reads, &pb.Read{Table: table, Sources: sources})
		case verb == "offers":
			r.Types = append(r.Types, &pb.Type{Url: URL(word)})
		default:
			if lists[verb] != nil {
				*lists[verb] = append(*lists[verb], word)
			}
		}
	}
	for i, url := range r.ClientReports {
		r.ClientReports[i] = URL(url)
	}
	w.ready[k.Name()] = r
	return r
}

// Rows are rows by words KEY, KEY=PAYLOAD or, with the source that it was derived from,
// KEY=PAYLOAD@SOURCE; -KEY is one that goes.
func Rows(table string, words []string) *pb.TableRows {
	t := &pb.TableRows{Table: table}
	for _, word := range words {
		if key, gone := strings.CutPrefix(word, "-"); gone {
			t.Deletes = append(t.Deletes, key)
			continue
		}
		key, payload, _ := strings.Cut(word, "=")
		payload, source, _ := strings.Cut(payload, "@")
		t.Upserts = append(t.Upserts, &pb.Row{Key: key, Payload: []byte(payload), Source: source})
	}
	return t
}

// At cuts `at N` off the end of words: the revision of N; nil: none.
func At(words []string) (*pb.Revision, []string, error) {
	n := len(words)
	if n < 2 || words[n-2] != "at" {
		return nil, words, nil
	}
	number, err := strconv.ParseUint(words[n-1], 10, 64)
	return &pb.Revision{Epoch: 1, Number: number}, words[:n-2], err
}

// Messages are what a plugin says:
//
//	rows TABLE [-]KEY[=PAYLOAD] … [at N]   it publishes or deletes rows (Rows), a deriver of revision N
//	synced, lost WHY, found
//	done N [WHAT: REASON; …], done N spans NAME …    it is done with a revision, at which something failed, or what it did
//	view TYPE ID [NAME=CONTENT …] at N     it describes a view, and says what is in it
//	names TYPE ID LABEL           it says what a view is called
//	without TYPE ID NAME … at N   a view lacks these now
//	lacks TYPE ID NAME … at N     it is known that a view has none of these
//	places PROXY TYPE ID at N     it places a proxy, into no view if ID is 0
//	denies PROXY WHY at N         it refuses a proxy
//	answers ID at N               it answers a wish
//	patches ID NAME=CONTENT …     it answers what it was asked; fails ID WHY [limit NAME]
//	complains TEXT                it logs an error
//	stores ID TABLE NAME          it wants an object; stored ID: it answers such a wish
func (w *World) Messages(verb string, words []string) ([]*pb.FromPlugin, error) {
	rev, words, err := At(words)
	if err != nil {
		return nil, err
	}
	m := w.made(verb, words, rev)
	for _, of := range []func(string, []string, *pb.Revision) *pb.FromPlugin{rowMessage, answerMessage} {
		if len(m) == 0 {
			if one := of(verb, words, rev); one != nil {
				m = append(m, one)
			}
		}
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("a plugin does not %s", verb)
	}
	return m, nil
}

// number is a word; 0: it is none.
func number(words []string, i int) uint64 {
	if i >= len(words) {
		return 0
	}
	n, _ := strconv.ParseUint(words[i], 10, 64)
	return n
}

// rowMessage is about rows, and how far a plugin is with them.
func rowMessage(verb string, words []string, rev *pb.Revision) *pb.FromPlugin {
	switch verb {
	case "rows":
		return &pb.FromPlugin{Rows: &pb.Rows{Revision: rev, Tables: []*pb.TableRows{Rows(words[0], words[1:])}}}
	case "synced":
		return &pb.FromPlugin{Synced: &pb.Synced{}}
	case "done":
		return &pb.FromPlugin{Done: doneMessage(words)}
	case "lost":
		return &pb.FromPlugin{Lost: &pb.Lost{Reason: strings.Join(words, " ")}}
	case "found":
		return &pb.FromPlugin{Found: &pb.Found{}}
	case "complains":
		return &pb.FromPlugin{Log: &pb.Log{Level: pb.LogLevelError, Text: strings.Join(words, " ")}}
	}
	return nil
}

func doneMessage(words []string) *pb.Done {
	done := &pb.Done{Revision: &pb.Revision{Epoch: 1, Number: number(words, 0)}}
	for _, fault := range strings.Split(strings.Join(words[1:], " "), "; ") {
		if what, reason, failed := strings.Cut(fault, ": "); failed {
			done.Faults = append(done.Faults, &pb.Fault{What: what, Reason: reason})
		}
	}
	if len(words) > 2 && words[1] == "spans" {
		for _, name := range words[2:] {
			done.Spans = append(done.Spans, &pb.Span{Name: name})
		}
	}
	return done
}

// answerMessage answers a question, or wants something of another plugin.
func answerMessage(verb string, words []string, rev *pb.Revision) *pb.FromPlugin {
	id := number(words, 0)
	switch verb {
	case "answers":
		return &pb.FromPlugin{Wanted: &pb.Wanted{Id: id, Revision: rev}}
	case "patches":
		m := &pb.Patched{Id: id}
		for _, word := range words[1:] {
			name, content, _ := strings.Cut(word, "=")
			m.Resources = append(m.Resources, &pb.Resource{Name: name, Bytes: []byte(content)})
		}
		return &pb.FromPlugin{Patched: m}
	case "fails":
		why, limit, _ := strings.Cut(strings.Join(words[1:], " "), " limit ")
		return &pb.FromPlugin{Patched: &pb.Patched{Id: id, Error: why, Limit: limit}}
	case "stores":
		return &pb.FromPlugin{Store: &pb.Store{Id: id, Verb: pb.VerbGet, Table: words[1], Name: words[2]}}
	case "stored":
		return &pb.FromPlugin{Stored: &pb.Stored{Id: id, Code: pb.CodeOk}}
	}
	return nil
}

// made is what a generator says of views, and of who is in which.
func (w *World) made(verb string, words []string, rev *pb.Revision) []*pb.FromPlugin {
	change := func(c *pb.Change) []*pb.FromPlugin {
		c.Type, c.View, c.Revision = URL(words[0]), number(words, 1), rev
		return []*pb.FromPlugin{{Change: c}}
	}
	switch verb {
	case "view":
		bodies, entries := &pb.Bodies{}, []*pb.Entry{}
		for _, word := range words[2:] {
			name, content, _ := strings.Cut(word, "=")
			w.bodies++
			bodies.Bodies = append(bodies.Bodies, &pb.Body{Id: w.bodies, Bytes: encode(URL(words[0]), name, content)})
			entries = append(entries, &pb.Entry{Name: name, Body: w.bodies})
		}
		described := &pb.View{Type: URL(words[0]), View: number(words, 1)}
		return append([]*pb.FromPlugin{{Bodies: bodies}, {View: described}}, change(&pb.Change{Upserts: entries})...)
	case "names":
		return []*pb.FromPlugin{{View: &pb.View{Type: URL(words[0]), View: number(words, 1), Label: words[2]}}}
	case "without":
		return change(&pb.Change{Removes: words[2:]})
	case "lacks":
		var entries []*pb.Entry
		for _, name := range words[2:] {
			entries = append(entries, &pb.Entry{Name: name})
		}
		return change(&pb.Change{Upserts: entries})
	case "places":
		p := &pb.Placement{Type: URL(words[1]), View: number(words, 2)}
		return []*pb.FromPlugin{{Place: &pb.Place{Connection: w.id(words[0]), Revision: rev, Placements: []*pb.Placement{p}}}}
	case "denies":
		return []*pb.FromPlugin{{Place: &pb.Place{Connection: w.id(words[0]), Revision: rev, Refused: strings.Join(words[1:], " ")}}}
	}
	return nil
}

// id is the number of a proxy's connection; 0: it has none.
func (w *World) id(proxy string) uint64 {
	if conn := w.Proxies[proxy]; conn != nil {
		return conn.ID
	}
	return 0
}
