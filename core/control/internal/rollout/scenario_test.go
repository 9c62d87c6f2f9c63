package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/archive"
)

// TestScenarios plays testdata/*.txtar. Lines, with # comments:
//
//	hold DURATION [most VALUE]       the settings; most: a metric is watched
//	later DURATION                   time goes by, and what is due is done
//	begin N after M                  a revision of changes that people made is about to be served
//	unchanged                        it changed nothing for anybody
//	watch FIRST BEHIND               how many first proxies are connected, and how many have not acknowledged
//	refused N WHY                    one of them refused
//	measured VALUE|nan|error TEXT    the metric
//	promote, abort WHY               orders
//	restart N                        it is made anew, and takes up what was; N is the newest revision
//	does ACTION|nothing              what is to be done, since it was last asked
//	is STATE [WHY]                   how far the stage is, and what it waits for
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	r    *machine
	now  time.Time
	done Action
}

func play(t *testing.T, script string) {
	w := &world{now: time.Unix(0, 0)}
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := w.line(words[0], words[1:]); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
}

func (w *world) did(a Action) { w.done = cmp.Or(a, w.done) }

func (w *world) line(verb string, words []string) error {
	rest := strings.Join(words, " ")
	number := func(i int) uint64 { n, _ := strconv.ParseUint(words[i], 10, 64); return n }
	switch verb {
	case "hold":
		d, err := time.ParseDuration(words[0])
		cfg := Config{Hold: d, Metric: len(words) > 1}
		if cfg.Metric {
			cfg.Most, _ = strconv.ParseFloat(words[2], 64)
		}
		if len(words) > 3 {
			cfg.Range, _ = time.ParseDuration(words[4])
		}
		w.r = newMachine(cfg)
		return err
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		a, _ := w.r.Due(w.now)
		w.did(a)
		return err
	case "begin":
		w.did(w.r.Begin(number(0), number(2), w.now))
	case "unchanged":
		w.did(w.r.Unchanged())
	case "watch":
		w.r.Watch(int(number(0)), int(number(1)), w.now)
	case "refused":
		w.did(w.r.Refused(number(0), strings.Join(words[1:], " ")))
	case "measured":
		switch words[0] {
		case "error":
			w.did(w.r.Measured(0, errors.New(strings.Join(words[1:], " ")), w.now))
		case "nan":
			w.did(w.r.Measured(math.NaN(), nil, w.now))
		default:
			v, err := strconv.ParseFloat(words[0], 64)
			w.did(w.r.Measured(v, nil, w.now))
			return err
		}
	case "restart":
		was := w.r.Status()
		served, err := strconv.ParseUint(rest, 10, 64)
		w.r = newMachine(w.r.cfg)
		w.did(w.r.Restore(was, served, w.now))
		return err
	case "promote", "abort":
		var a Action
		var err error
		if verb == "promote" {
			a, err = w.r.Promote()
		} else {
			a, err = w.r.Abort(rest)
		}
		w.did(a)
		if err != nil {
			w.done = "refused"
		}
	case "does":
		got := string(cmp.Or(w.done, "nothing"))
		w.done = None
		return archive.Expect(got, rest)
	case "is":
		s := w.r.Status()
		return archive.Expect(strings.TrimSpace(fmt.Sprint(s.State, " ", s.Why)), rest)
	default:
		return errors.New("no such line")
	}
	return nil
}
