package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestHelp: all help has each flag once, in its group; the short one has those that most use.
func TestHelp(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	PilotFlags(fs)
	fs.Bool("help-all", false, "no setting")
	all, short := Help(fs, true), Help(fs, false)
	for _, name := range append(Names(), SettingsFlag) {
		if n := strings.Count(all, " --"+name+" "); n != 1 {
			t.Errorf("--%s stands %d times in all help", name, n)
		}
		if strings.Contains(short, " --"+name+" ") != slices.Contains(common, name) {
			t.Errorf("--%s: is it for most people? %v", name, slices.Contains(common, name))
		}
	}
	for _, name := range common {
		if fs.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
	before := -1
	for _, g := range groups {
		at := strings.Index(all, "\n"+g.title+":\n")
		if at < 0 && !strings.HasPrefix(all, g.title+":\n") || at < before {
			t.Errorf("the group %q is at %d, after one at %d", g.title, at, before)
		}
		before = at
	}
	for _, no := range []string{"--help-all", "--" + pilotFlags.bools[0]} {
		if strings.Contains(all, no) {
			t.Errorf("help has %s, which is no setting", no)
		}
	}
	for line := range strings.Lines(all) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > helpColumns {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}
