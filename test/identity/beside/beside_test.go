package beside

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	netns.Main() // Envoys are in network namespaces
	mesh.Quick(&binary, m.Run)
}

// row is a question.
type row struct {
	what string
	ask  func(t *testing.T, s *server) string
	// differs is what both answer where they differ on purpose.
	differs *difference
}

// difference is a row of docs/differences.md, by how its area begins.
type difference struct{ area, istiod, coxswain string }

// part is some rows.
type part struct {
	name string
	rows []row
}

// result is what became of a question.
type result struct{ part, what, istiod, coxswain, verdict string }

const same, listed, unlisted = "same", "listed", "DIFFERS"

// TestIdentity asks both. A difference that no row lists, and one that is listed and is none, fails
// it.
func TestIdentity(t *testing.T) {
	need.All(t)
	w := newWorld(t)
	var all []result
	ask := func(parts []part) {
		for _, p := range parts {
			for _, r := range p.rows {
				all = append(all, w.compare(t, p.name, r))
			}
		}
	}
	all = append(all, w.handsOut(t)...)
	w.start(t, false)
	ask(w.unset(t))
	w.stop()
	w.start(t, true)
	ask(w.set(t))
	table(t, all)
}

// compare asks both.
func (w *world) compare(t *testing.T, part string, r row) result {
	t.Helper()
	got := result{part: part, what: r.what, istiod: r.ask(t, w.istiod), coxswain: r.ask(t, w.coxswain), verdict: same}
	return got.judged(t, r.differs)
}

// judged reports whether the answers are as they should be.
func (r result) judged(t *testing.T, d *difference) result {
	t.Helper()
	switch {
	case d == nil && r.istiod == r.coxswain:
	case d != nil && r.istiod == d.istiod && r.coxswain == d.coxswain:
		r.verdict = listed
		if !listedIn(t, d.area) {
			t.Errorf("docs/differences.md has no row that begins with %q", d.area)
		}
	default:
		r.verdict = unlisted
		t.Errorf("%s: %s\n  istiod:   %s\n  coxswain: %s", r.part, r.what, r.istiod, r.coxswain)
	}
	return r
}

func listedIn(t *testing.T, area string) bool {
	t.Helper()
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "\n| "+area)
}

// table logs what came out.
func table(t *testing.T, all []result) {
	t.Helper()
	counts, before := map[string]int{}, ""
	var b strings.Builder
	for _, r := range all {
		if r.part != before {
			fmt.Fprintf(&b, "\n%s\n", r.part)
			before = r.part
		}
		counts[r.verdict]++
		if r.istiod == r.coxswain {
			fmt.Fprintf(&b, "  %-8s %-58s %s\n", r.verdict, r.what, r.istiod)
			continue
		}
		fmt.Fprintf(&b, "  %-8s %-58s istiod: %s | coxswain: %s\n", r.verdict, r.what, r.istiod, r.coxswain)
	}
	t.Logf("%s\n%d questions: %d answered alike, %d differ as docs/differences.md says, %d differ otherwise",
		b.String(), len(all), counts[same], counts[listed], counts[unlisted])
}
