package seen

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const table = "t"

var begin = time.Unix(1_000_000, 0)

// dates gives rows their times, and returns them.
func dates(s *Seen, started bool, now time.Time, keys ...string) []int64 {
	var rows []*pb.Row
	var out []int64
	for _, k := range keys {
		rows = append(rows, &pb.Row{Key: k, Undated: true})
	}
	s.Date(table, rows, started, now)
	for _, r := range rows {
		out = append(out, r.Created)
	}
	return out
}

func all(environment.Name) bool { return true }

func TestFirstSeenCountsBetweenCommits(t *testing.T) {
	s := New()
	if got := dates(s, false, begin, "a/x", "b/x"); got[0] != 0 || got[1] != 0 {
		t.Errorf("at the start: %v", got)
	}
	s.Committed(all, begin)
	later := dates(s, true, begin, "c/x", "d/x", "a/x")
	if later[0] != later[1] || later[0] <= 0 || later[2] != 0 {
		t.Errorf("of one moment: %v", later)
	}
	s.Committed(all, begin)
	if next := dates(s, true, begin.Add(-time.Hour), "e/x"); next[0] < later[0]+MaxRank {
		t.Errorf("of the next moment, by a clock that was set back: %d after %d", next[0], later[0])
	}
	dated := []*pb.Row{{Key: "f/x", Created: 7}, {Key: "g/x", Created: 5, Undated: true}, {Key: "a/x", Created: -3, Undated: true}}
	s.Date(table, dated, true, begin)
	if dated[0].Created != 7 || dated[1].Created <= later[0] || dated[2].Created != -3 {
		t.Errorf("%v", dated)
	}
}

func TestItOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *Seen {
		t.Helper()
		s, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	dates(s, false, begin, "a/x")
	s.Committed(all, begin)
	b := dates(s, true, begin, "b/x")[0]
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	s = open()
	got := dates(s, false, begin, "a/x", "b/x", "c/x") // what came meanwhile is later than what is known
	if got[0] != 0 || got[1] != b || got[2] <= b {
		t.Errorf("%v, %d", got, b)
	}
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"", "x\n", strings.TrimSuffix(string(text), "end\n"), head + "\nx 0 t a/x\nend\n", head + "\n1 2 t\nend\n"} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if s = open(); s.knew || len(s.rows) > 0 {
			t.Errorf("%q: it knows %v", broken, s.rows)
		}
		if aside, _ := filepath.Glob(path + ".broken-*"); len(aside) == 0 {
			t.Errorf("%q: it is not set aside", broken)
		}
	}
}

func TestWhatIsGoneIsForgottenLate(t *testing.T) {
	s := New()
	s.bound = 3
	none := func(environment.Name) bool { return false }
	dates(s, false, begin, "a/x")
	s.Committed(none, begin)
	if dates(s, true, begin.Add(keep-time.Hour), "a/x")[0] != 0 {
		t.Error("it is back soon, and not as old as it was")
	}
	s.Committed(none, begin.Add(keep))
	s.Committed(none, begin.Add(2*keep+sweepEvery))
	if dates(s, true, begin.Add(3*keep), "a/x")[0] == 0 {
		t.Error("it is back late, and as old as it was")
	}
	// Of more than there is room for, what is there is never forgotten.
	for i := range 10 {
		dates(s, true, begin.Add(3*keep), fmt.Sprint("n/", i))
	}
	if len(s.rows) != 3 || dates(s, true, begin.Add(4*keep), "n/0") == nil || s.rows[environment.Name{Table: table, Key: "n/1"}].first == 0 {
		t.Errorf("%v", s.rows)
	}
}
