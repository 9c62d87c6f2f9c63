package feed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about one plugin, two tables and
// their sources, `files` and, derived, `gateway`. Lines, with # comments:
//
//	reads TABLE[@sources] …     what the plugin reads
//	begins                      a session of it begins
//	SOURCE has TABLE [-]KEY[=PAYLOAD] …    rows come or go
//	takes [all] TABLE KEY[=PAYLOAD] -KEY …, …    what the session is sent now; nothing
//	comes [all] …               the same, of a first revision that is not made yet
//	ahead TABLE KEY …, then what of that goes ahead of what it is to be sent, after a colon
//	lacks yes|no                whether there is something that it was not sent
//	done                        it is done with what it was sent
//	dies [TABLE KEY, …]         it dies before that, and gets these as they were before
//	withheld TABLE KEY, …       all that it gets as they were before; nothing
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	env      *environment.Environment
	shards   map[string]*environment.Shard
	reads    []*pb.Read
	feed     *Feed
	suspects *Suspects
}

func play(t *testing.T, script string) {
	w := &world{env: environment.New(), suspects: NewSuspects(), shards: map[string]*environment.Shard{
		"files": {Name: "files"}, "gateway": {Name: "gateway", Order: 1, Derived: true},
	}}
	archive.Lines(t, script, w.line)
}

func (w *world) line(words []string) error {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "reads":
		for _, word := range words[1:] {
			table, _, sources := strings.Cut(word, "@")
			w.reads = append(w.reads, &pb.Read{Table: table, Sources: sources})
		}
	case "begins":
		w.feed = New(w.reads)
	case "files", "gateway":
		w.has(w.shards[words[0]], words[2], words[3:])
	case "takes", "comes":
		var coming *environment.Pending
		if words[0] == "comes" {
			coming = w.env.Pending
		}
		tables, whole := w.feed.Drain(w.env.Committed, coming, w.suspects)
		return archive.Expect(cmp.Or(strings.TrimSpace(map[bool]string{true: "all "}[whole]+text(tables)), "nothing"), rest)
	case "ahead":
		keys := map[string]environment.Change{}
		before, want, _ := strings.Cut(rest, ": ")
		for _, key := range strings.Fields(before)[1:] {
			keys[key] = environment.Change{}
		}
		t, size := w.feed.Ahead(w.env.Committed, words[1], keys, w.suspects)
		slices.SortFunc(t.Upserts, func(a, b *pb.Row) int { return strings.Compare(a.Key, b.Key) })
		if len(keys) > 0 && size == 0 {
			return fmt.Errorf("it takes no room")
		}
		return archive.Expect(text([]*pb.TableRows{t}), want)
	case "lacks":
		return archive.Expect(map[bool]string{true: "yes", false: "no"}[w.feed.Lacks()], rest)
	case "done":
		w.suspects.Done(w.feed.Left())
	case "dies":
		rows, _ := w.suspects.Died()
		return archive.Expect(strings.Join(rows, ", "), rest)
	case "withheld":
		return archive.Expect(cmp.Or(strings.Join(w.suspects.Withheld(), ", "), "nothing"), rest)
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

// has lets rows of a source come and go, and commits them.
func (w *world) has(s *environment.Shard, table string, words []string) {
	var rows []*pb.Row
	var gone []string
	for _, word := range words {
		key, payload, _ := strings.Cut(word, "=")
		if k, ok := strings.CutPrefix(key, "-"); ok {
			gone = append(gone, k)
			continue
		}
		rows = append(rows, &pb.Row{Key: key, Payload: []byte(payload)})
	}
	w.env.Pending.Update(s, table, rows, gone)
	changes := w.env.Pending.Commit(false, nil)
	w.suspects.Changed(w.reads, changes)
	if w.feed != nil {
		w.feed.Changed(changes)
	}
}

func text(tables []*pb.TableRows) string {
	var all []string
	for _, t := range tables {
		words := []string{t.Table}
		for _, r := range t.Upserts {
			word := r.Key
			if len(r.Payload) > 0 {
				word += "=" + string(r.Payload)
			}
			words = append(words, word)
		}
		for _, k := range t.Deletes {
			words = append(words, "-"+k)
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}
