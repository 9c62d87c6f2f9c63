package parity

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

var (
	meshes     = flag.Int("meshes", 0, "compare in so many random meshes")
	seed       = flag.Uint64("seed", 1, "where random meshes come from")
	first      = flag.Uint64("first", 0, "number of the first mesh of the seed")
	shrinks    = flag.Int("shrinks", 20, "shrink up to this many differences, one of each sort")
	found      = flag.String("found", "", "folder for the states that shrunk meshes become")
	keep       = flag.Bool("keep", false, "write every mesh as a state, too")
	verbose    = flag.Bool("refused", false, "say why objects are refused, and each mesh that differs")
	leastOfAll = flag.Float64("min-meshes", 99.5, "percentage of resources of random meshes that are to be equal, or to differ as docs/differences.md says")
)

// still is how long answers that differ must stay the same to count.
const still = 700 * time.Millisecond

// dying is how long an istiod may take to end after its streams have.
const dying = 5 * time.Second

// startTool starts the tool so that it stays.
func startTool(t *testing.T, ours, peer string) (io.WriteCloser, *json.Decoder) {
	cmd := exec.Command(*tool, "asker", ours, peer)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return in, json.NewDecoder(out)
}

// TestMeshes compares in random meshes. A difference is shrunk and written as a state of its own.
func TestMeshes(t *testing.T) {
	if *meshes == 0 {
		need.Left(t, "`make parity-live MESHES=100` makes some")
	}
	j := newJudge(t, *kindsMade != "istio")
	j.renews = true
	began := time.Now()
	var total tally
	var said report
	var refused, rejected, differ, late, again, ended, remembered, shrunk int
	sorts := map[string]int{}
	for n := *first; n < *first+uint64(*meshes); n++ {
		if done := n - *first; done > 0 && done%100 == 0 {
			fmt.Printf("%d meshes: %v\n", done, total)
		}
		m := newMesh(n, j.valid, &refused)
		made := len(m.objects)
		m.objects = j.move(j.there, m.objects)
		rejected += made - len(m.objects)
		if *keep {
			if err := m.write(filepath.Join(*found, fmt.Sprintf("all-%d-%d", *seed, n)), "random"); err != nil {
				t.Fatal(err)
			}
		}
		r := j.ask(m.proxies, still)
		if r.Error != "" { // somebody did not answer in time, or an istiod ended: once more
			fmt.Printf("mesh %d of seed %d is asked about once more: %s\n", n, *seed, r.Error)
			again++
			j.renew()
			r = j.ask(m.proxies, still)
		}
		written := j.written(m.makes)
		if r.differs() || len(written.differences) > 0 {
			before := r.equal()
			j.renew()
			if r = j.ask(m.proxies, still); r.equal() > before {
				remembered++
			}
			if len(written.differences) > 0 {
				written = j.written(m.makes)
			}
		}
		// A stream ends a moment before its istiod has. Nobody knows what that would have said.
		if strings.Contains(r.Error, "the peer: ") && j.peer.EndsWithin(dying) {
			fmt.Printf("mesh %d of seed %d ends istiod each time: %s\n", n, *seed, r.Error)
			ended++
			j.renew()
			continue
		}
		if r.Error != "" {
			t.Errorf("mesh %d of seed %d: %s", n, *seed, r.Error)
			_ = m.write(filepath.Join(*found, fmt.Sprintf("%d-%d-error", *seed, n)), r.Error)
			continue
		}
		if r.Late {
			late++
		}
		said.add(written)
		clean := j.tellWritten(m, n, written, sorts, &shrunk)
		for _, p := range m.proxies {
			f := r.Proxies[p.Name]
			total.add(f.Tally)
			if f.Report == "" {
				continue
			}
			clean = false
			if *verbose {
				fmt.Printf("DIFFERS mesh %d, %s: %d of %d resources: %q\n", n, p.Name,
					f.Tally.Expected+f.Tally.Extra-f.Tally.Equal, f.Tally.Expected, sortsOf(f.Report))
				lines := strings.Split(f.Report, "\n")
				fmt.Println(strings.Join(lines[:min(12, len(lines))], "\n"))
			}
			for _, sort := range sortsOf(f.Report) {
				sorts[sort]++
				if sorts[sort] > 1 || shrunk >= *shrinks {
					continue
				}
				shrunk++
				small, report := j.shrink(m, &p, sort)
				if report == "" {
					fmt.Printf("mesh %d of seed %d, %s: not seen again: %s\n", n, *seed, p.Name, sort)
					break
				}
				dir := filepath.Join(*found, fmt.Sprintf("%d-%d-%d", *seed, n, shrunk))
				for _, s := range sortsOf(report) {
					sorts[s]++ // they come of the same
				}
				if err := small.write(dir, sort); err != nil {
					t.Fatal(err)
				}
				fmt.Printf("mesh %d of seed %d, %s: %s\n%s%s\n", n, *seed, p.Name, dir, small, excerpt(report, sort))
			}
		}
		if !clean {
			differ++
		}
	}
	took := time.Since(began)
	printSorts(sorts)
	fmt.Printf("%d meshes of seed %d, %d of them differ: %v\n%v\n%d objects refused by the webhook, %d by the API server; "+
		"%d markers late; %d meshes asked about once more, %d that end istiod are not compared; of %d meshes istiod "+
		"said more that was equal when it had started anew; %.2f s a mesh\n", *meshes, *seed,
		differ, total, said, refused, rejected, late, again, ended, remembered, took.Seconds()/float64(*meshes))
	if exact, _ := total.shares(); exact < *leastOfAll {
		t.Errorf("%.2f %% of resources are equal, %v are wanted", exact, *leastOfAll)
	}
	said.judge(t)
}

// tellWritten says what differs of what both wrote, and shrinks the first difference of each sort.
// It reports whether nothing does.
func (j *judge) tellWritten(m randomMesh, n uint64, written report, sorts map[string]int, shrunk *int) bool {
	if *verbose && len(written.differences) > 0 {
		fmt.Printf("DIFFERS mesh %d, written: %v\n%s", n, written, written.text())
	}
	for _, sort := range written.sorts() {
		if sorts[sort]++; sorts[sort] > 1 || *shrunk >= *shrinks {
			continue
		}
		*shrunk++
		small, report := j.shrink(m, nil, sort)
		if report == "" {
			fmt.Printf("mesh %d of seed %d: not seen again: %s\n", n, *seed, sort)
			continue
		}
		dir := filepath.Join(*found, fmt.Sprintf("%d-%d-%d", *seed, n, *shrunk))
		if err := small.write(dir, sort); err != nil {
			j.t.Fatal(err)
		}
		fmt.Printf("mesh %d of seed %d: %s\n%s%s\n", n, *seed, dir, small, report)
	}
	return len(written.differences) == 0
}

// printSorts prints how often there was each sort of difference.
func printSorts(sorts map[string]int) {
	names := slices.Collect(maps.Keys(sorts))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sorts[b], sorts[a]), cmp.Compare(a, b)) })
	for _, s := range names {
		fmt.Printf("%5d  %s\n", sorts[s], s)
	}
}

var (
	inBrackets = regexp.MustCompile(`\[[^\]]*\]`)
	numeric    = regexp.MustCompile(`\d+`)
)

// sortsOf are the sorts of differences of a report: type and path, without names.
func sortsOf(report string) (sorts []string) {
	seen := map[string]bool{}
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			sorts = append(sorts, s)
		}
	}
	var kind string
	for _, line := range strings.Split(report, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "      ") || strings.HasPrefix(line, "    …"):
		case strings.HasPrefix(line, "    "):
			add(kind + " " + inBrackets.ReplaceAllString(strings.TrimSpace(line), "[]"))
		default:
			kind = strings.Fields(line)[1]
			for _, end := range []string{": missing", ": extra", "another order"} {
				if strings.HasSuffix(line, end) {
					add(kind + " " + numeric.ReplaceAllString(resourceSort(line), "N"))
				}
			}
		}
	}
	return sorts
}

// excerpt is what a report says of a sort of difference, three times at most.
func excerpt(report, sort string) string {
	var out []string
	lines := strings.Split(report, "\n")
	for i := 0; i < len(lines) && len(out) < 3; i++ {
		if strings.HasPrefix(lines[i], " ") {
			continue
		}
		block := lines[i]
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "); i++ {
			block += "\n" + lines[i+1]
		}
		if slices.Contains(sortsOf(block), sort) {
			out = append(out, block+"\n")
		}
	}
	return strings.Join(out, "")
}

// resourceSort is a line about a whole resource without its name's particulars.
func resourceSort(line string) string {
	words := strings.Fields(line)
	which := words[2]
	if i := strings.IndexAny(which, "|_.:"); i > 0 {
		which = which[:i]
	}
	return which + " " + words[len(words)-1]
}
