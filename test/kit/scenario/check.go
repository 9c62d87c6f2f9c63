package scenario

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Answer is what became of a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	// Seen is what the backend saw, if one answered.
	Seen Seen
	Took time.Duration
}

// Seen is what a backend saw of a request: Name is its own.
type Seen struct {
	Name, Path string
	Headers    http.Header
}

// Check looks at one answer.
func (w Want) Check(a Answer) error {
	want := w.Statuses
	if want == nil {
		want = []int{w.Status}
		if w.Status == 0 {
			want[0] = http.StatusOK
		}
	}
	_, known := w.From[a.Seen.Name]
	switch {
	case !slices.Contains(want, a.Status):
		return fmt.Errorf("status %d, want %v: %s", a.Status, want, a.Body)
	case a.Took < w.After:
		return fmt.Errorf("it took %v, want %v at least", a.Took, w.After)
	case w.From != nil && a.Status == http.StatusOK && !known:
		return fmt.Errorf("%q answered", a.Seen.Name)
	case w.Path != "" && a.Seen.Path != w.Path:
		return fmt.Errorf("the backend saw path %q", a.Seen.Path)
	case w.Body != "" && a.Body != w.Body:
		return fmt.Errorf("body %q", a.Body)
	}
	if err := headers("the answer", a.Header, w.Answer); err != nil {
		return err
	}
	return headers("the backend", a.Seen.Headers, w.Seen)
}

func headers(who string, got http.Header, want map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, text := want[name], got.Get(name)
		if _, there := got[http.CanonicalHeaderKey(name)]; value == "*" && there {
			continue
		}
		if text != value {
			return fmt.Errorf("%s has %s: %q, want %q", who, name, text, value)
		}
	}
	return nil
}

// CheckAll looks at all answers of a call. Shares may be off by slack percent.
func (w Want) CheckAll(answers []Answer, slack int) error {
	from, statuses := map[string]int{}, map[int]bool{}
	for _, a := range answers {
		from[a.Seen.Name]++
		statuses[a.Status] = true
	}
	if w.Same && len(from) != 1 {
		return fmt.Errorf("several backends answered: %v", from)
	}
	for name, share := range w.From {
		got := 100 * from[name] / len(answers)
		if from[name] == 0 || share > 0 && (got < share-slack || got > share+slack) {
			return fmt.Errorf("%d %% from %s, want %d: %v", got, name, share, from)
		}
	}
	for _, s := range w.Statuses {
		if !statuses[s] {
			return fmt.Errorf("statuses %v, want each of %v", statuses, w.Statuses)
		}
	}
	return nil
}
