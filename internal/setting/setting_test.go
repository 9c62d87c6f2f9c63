package setting

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Bytes int     `setting:"maxBytes" default:"4Mi" least:"64Ki" most:"1Gi" help:"bytes of a request"`
	Rate  float64 `setting:"maxRate" default:"0.5" zero:"no bound" help:"requests a second"`
}

type outer struct {
	Wait  time.Duration `setting:"wait" default:"1m30s" above:"0" help:"how long to wait"`
	Inner inner         `setting:",squash"`
	On    bool          `setting:"on" default:"true" help:"whether to"`
	Total int64         `setting:"total" most:"10" help:"how many in all"`
	Few   int           `setting:"few" least:"2" default:"2" help:"how many"`
	Plain string
	Left  int `setting:"-"`
}

// TestDefault: a struct has what its tags say, those of the structs within it too.
func TestDefault(t *testing.T) {
	want := outer{Wait: 90 * time.Second, Inner: inner{Bytes: 4 << 20, Rate: .5}, On: true, Few: 2}
	if got := Default[outer](); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFields: settings come in the order of fields, with their values, and say what 0 means.
func TestFields(t *testing.T) {
	var lines []string
	of := Default[outer]()
	of.Total = 7
	for _, f := range Fields(of) {
		lines = append(lines, fmt.Sprintf("%s=%v: %s", f.Name, f.Value, f.Help))
	}
	want := []string{
		"wait=1m30s: how long to wait", "maxBytes=4194304: bytes of a request", "maxRate=0.5: requests a second; 0: no bound",
		"on=true: whether to", "total=7: how many in all", "few=2: how many",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant %q", lines, want)
	}
}

// TestCheck: each bound is refused from its first value on that it doesn't let through, and no
// earlier.
func TestCheck(t *testing.T) {
	for _, row := range []struct {
		edit func(*outer)
		want string // empty: nothing is wrong
	}{
		{func(*outer) {}, ""},
		{func(o *outer) { o.Wait = 1 }, ""},
		{func(o *outer) { o.Wait = 0 }, "wait: 0s must be more than 0s"},
		{func(o *outer) { o.Inner.Bytes = 64 << 10 }, ""},
		{func(o *outer) { o.Inner.Bytes = 64<<10 - 1 }, "maxBytes: 65535 must be from 65536 to 1073741824"},
		{func(o *outer) { o.Inner.Bytes = 1 << 30 }, ""},
		{func(o *outer) { o.Inner.Bytes = 1<<30 + 1 }, "maxBytes: 1073741825 must be from 65536 to 1073741824"},
		{func(o *outer) { o.Inner.Rate = 0 }, ""},
		{func(o *outer) { o.Inner.Rate = -.25 }, "maxRate: -0.25 is negative; 0 means no bound"},
		{func(o *outer) { o.Total = 10 }, ""},
		{func(o *outer) { o.Total = math.MaxInt64 }, "total: 9223372036854775807 is more than 10"},
		{func(o *outer) { o.Few = 1 }, "few: 1 is less than 2"},
		{func(o *outer) { o.Few, o.Wait = 1, -1 }, "wait: -1ns must be more than 0s\nfew: 1 is less than 2"},
	} {
		o := Default[outer]()
		row.edit(&o)
		got := ""
		if err := Check(o); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%+v: %q, want %q", o, got, row.want)
		}
	}
}

// TestWrong: a tag that can't be read is said when the program starts, with the setting's name.
func TestWrong(t *testing.T) {
	for want, read := range map[string]func(){
		"setting a: its tag default": func() {
			Default[struct {
				A time.Duration `setting:"a" default:"soon"`
			}]()
		},
		"setting b: its tag least": func() {
			_ = Check(struct {
				B int `setting:"b" least:"1Ti"`
			}{})
		},
		"setting c: its tag default": func() {
			Default[struct {
				C []int `setting:"c" default:"1"`
			}]()
		},
		"setting d: its tag most": func() {
			_ = Check(struct {
				D float64 `setting:"d" most:"1Ki"`
			}{})
		},
		"setting e: its tag default": func() {
			Default[struct {
				E bool `setting:"e" default:"on"`
			}]()
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}()
			read()
		}()
	}
}
