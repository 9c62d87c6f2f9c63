package swap

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// remembering is a history, its log, and what it was told became of changes.
func remembering() (h *history, log *bytes.Buffer, outcomes *[]string) {
	log, outcomes = &bytes.Buffer{}, &[]string{}
	ended := func(_, outcome string) { *outcomes = append(*outcomes, outcome) }
	return newHistory(slog.New(slog.NewTextHandler(log, nil)), nil, ended), log, outcomes
}

func registry(name string) *manifest.Entry {
	return &manifest.Entry{Name: name, Kind: "registry", Builtin: "registry/" + name}
}

// Each state leads to those that may follow it, and a step astray is said.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		path    []State
		astray  bool
		outcome string
	}{
		{[]State{Starting, Syncing, Comparing, Switched, Kept}, false, "switched kept"},
		{[]State{Starting, Syncing, Comparing, Switched, RolledBack}, false, "switched rolled back"},
		{[]State{Starting, Syncing, Comparing, Refused}, false, "refused"},
		{[]State{Starting, Syncing, Comparing, Compared}, false, "compared"},
		{[]State{Starting, Syncing, Failed}, false, "failed"},
		{[]State{Starting, Failed}, false, "failed"},
		{[]State{Refused}, false, "refused"},
		{[]State{Switched, Kept}, false, "switched kept"},
		{[]State{Starting, Comparing}, true, ""},
		{[]State{Starting, Failed, Switched}, true, "failed switched"},
		{[]State{Starting, Syncing, Comparing, Switched, Kept, RolledBack}, true, "switched kept rolled back"},
	} {
		h, log, outcomes := remembering()
		change := h.open(t.Context(), doSwap, registry("a"), registry("a"), Options{})
		for _, to := range c.path {
			change.step(to)
		}
		if got := strings.Contains(log.String(), "went astray"); got != c.astray {
			t.Errorf("%v: astray %v", c.path, got)
		}
		if got := strings.Join(*outcomes, " "); got != c.outcome {
			t.Errorf("%v: outcomes %q, want %q", c.path, got, c.outcome)
		}
	}
}

func TestHistory(t *testing.T) {
	h, _, _ := remembering()
	for range historyLength + 3 {
		h.open(t.Context(), doRestart, registry("a"), registry("a"), Options{}).step(Failed, "why")
	}
	last := h.open(t.Context(), doSwap, registry("a"), registry("a"), Options{})
	last.found(&guard.Difference{})
	last.step(Refused, "one", "two")
	all := h.of("a")
	if len(all) != historyLength || all[historyLength-1].Line() != "swap refused: no difference (one; two)" || all[0].Line() != "restart failed (why)" {
		t.Errorf("%d changes, the last %q, the first %q", len(all), all[len(all)-1].Line(), all[0].Line())
	}
	all[0].Reasons[0] = "changed by a caller"
	if again := h.of("a"); again[0].Reasons[0] != "why" {
		t.Error("the history was changed from outside")
	}
	if len(h.of("b")) > 0 {
		t.Error("a plugin that never changed has a history")
	}
}

// A guard stops a switch, force goes on, and a dry run never switches.
func TestJudge(t *testing.T) {
	bad := &guard.Difference{Silent: true}
	half := guard.Guard{MaxRemoved: guard.Share{Percent: 50}}
	for _, c := range []struct {
		d    *guard.Difference
		o    Options
		want error
	}{
		{&guard.Difference{}, Options{}, nil}, {bad, Options{}, ErrRefused}, {bad, Options{Force: true}, nil},
	} {
		if err := judge(half.Check(c.d), c.o); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%+v %+v: got %v, want %v", c.d, c.o, err, c.want)
		}
	}
	for _, d := range []*guard.Difference{bad, {}} {
		var compared *comparedError
		if err := judge(half.Check(d), Options{DryRun: true, Force: true}); !errors.As(err, &compared) || len(compared.why) != len(half.Check(d)) {
			t.Errorf("%+v: a dry run ends with %v", d, err)
		}
	}
}

// What an entry says of guard and rollback, and what holds without.
func TestGuardAndRollback(t *testing.T) {
	set := parse(t, "a registry", "b registry , guard: {maxRemoved: 7}, rollback: {nackedProxies: 3, window: 1s}")
	a, b := set.Plugins[0], set.Plugins[1]
	if g := guardOf(a); g.MaxRemoved != (guard.Share{Percent: 50}) {
		t.Errorf("%+v", g)
	}
	if g := guardOf(b); g.MaxRemoved != (guard.Share{Count: 7}) {
		t.Errorf("%+v", g)
	}
	if limit, window := rollbackOf(a); limit != (guard.Share{Percent: 5}) || window != 5*time.Minute {
		t.Errorf("%v %v", limit, window)
	}
	if limit, window := rollbackOf(b); limit != (guard.Share{Count: 3}) || window != time.Second {
		t.Errorf("%v %v", limit, window)
	}
}

// Two instances must fit: a new one is expected to need what the old one has.
func TestCrowded(t *testing.T) {
	running := []host.Status{{Entry: &manifest.Entry{Name: "a"}, Memory: 50e6}, {Entry: &manifest.Entry{Name: "b"}, Memory: 200e6}}
	if why := crowded("a", running, 100e6); why != "" {
		t.Error(why)
	}
	if why := crowded("b", running, 100e6); !strings.HasPrefix(why,
		"memory for both instances would exceed what there is: the old one has 200 MB, 100 MB are free") {
		t.Error(why)
	}
}
