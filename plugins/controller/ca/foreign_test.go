package ca

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestForeign: whose root may be overwritten: one's own, earlier ones, one made anew with the same
// key, what is told, and what is no root; nothing else, be there one's own beside it or not.
func TestForeign(t *testing.T) {
	now := time.Now()
	made := func(name string) *authority.Authority {
		t.Helper()
		a, err := authority.Root(name, newKey(t), 0, time.Hour, now)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	text := func(a *authority.Authority) string { return strings.Join(a.Bundle(), "") }
	first, second, other, again := made("a"), made("a"), made("other"), made("other")
	next, err := authority.Root("a", first.Key, 0, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	c := &claims{replaced: []string{fingerprint(again.Certificate)}}
	c.mine(first.Bundle())
	c.mine(second.Bundle())
	for name, of := range map[string]struct {
		text   string
		beside []string
		want   bool
	}{
		"the first":                {text(first), nil, false},
		"the second":               {text(second), nil, false},
		"the first with its key":   {text(next), nil, false},
		"somebody else's":          {text(other), nil, true},
		"one's own beside another": {text(other) + text(second), nil, false},
		"what is told":             {text(again), nil, false},
		"what is to come":          {text(other), other.Bundle(), false},
		"nothing":                  {"", nil, false},
		"no certificate":           {"-----BEGIN CERTIFICATE-----x", nil, false},
		"after what is none":       {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + text(other), nil, true},
	} {
		if got := c.foreign([]byte(of.text), of.beside...); (got != nil) != of.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFingerprints(t *testing.T) {
	digits := strings.Repeat("0a", 32)
	got, err := fingerprints([]string{digits, strings.TrimSuffix(strings.Repeat("0A:", 32), ":")})
	if err != nil || !slices.Equal(got, []string{digits, digits}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"", "0a", digits + "00", strings.Repeat("zz", 32)} {
		_, err := fingerprints([]string{digits, wrong})
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != "replaceRoots[1]" {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// shown is a Publisher that keeps rows.
type shown struct {
	sdk.Publisher
	rows map[string]kinds.Fault
}

func (s *shown) Update(table string, rows []*sdk.Row, gone []string) error {
	for _, r := range rows {
		var f kinds.Fault
		if err := json.Unmarshal(r.Payload, &f); err != nil || table != kinds.FaultTable {
			return errors.Join(err, errors.New(table))
		}
		s.rows[r.Key] = f
	}
	for _, key := range gone {
		delete(s.rows, key)
	}
	return nil
}

// TestReported: what people are shown begins and ends with its cause.
func TestReported(t *testing.T) {
	a, err := authority.Root("other", newKey(t), 0, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	out := &shown{rows: map[string]kinds.Fault{}}
	r := &reported{out: out}
	is := func(step string, want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(out.rows)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(r.stop("somebody's root"))
	is("stopped", "ca")
	if f := out.rows["ca"]; !strings.Contains(f.Message, "somebody's root") || r.why() != "somebody's root" {
		t.Errorf("%+v", f)
	}
	for again := range 2 {
		news, err := r.leave("shop", a.Certificate)
		check(err)
		if news != (again == 0) {
			t.Errorf("said %d times", again+1)
		}
	}
	is("left", "ca", "root shop")
	if f := out.rows["root shop"]; !strings.Contains(f.Hint, "--replaceRoot "+fingerprint(a.Certificate)) {
		t.Errorf("%+v", f)
	}
	check(r.stop(""))
	is("going on", "root shop")
	_, err = r.leave("shop", nil)
	check(err)
	is("mended")
	_, err = r.leave("shop", a.Certificate)
	check(err)
	check(r.clear())
	is("another replica leads")
}
