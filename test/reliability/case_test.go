package reliability

import (
	"slices"
	"testing"
	"time"
)

// trial is an abuse or an accident, and what is promised while it lasts.
type trial struct {
	name, promise string
	// do does it. It measures edits meanwhile.
	do func(w *world)
	// begun is done once the control plane serves, before others are connected.
	begun func(w *world)
	// set has more entries of plugins.yaml.
	set func(w *world) string
	// limits are those of each plugin.
	limits string
	// secure opens the port with TLS, own runs a copy of the program that belongs to the test, few
	// leaves it 256 descriptors, small puts the configuration on a disk of 256 KiB, shared has one
	// port for pages and xDS.
	secure, own, few, small, shared bool
	// flags are more of the program's.
	flags []string
	// restarts are plugins that it may cost a restart.
	restarts []string
	// own edits are held up by what it does, until the promised time in words: delays are shown and
	// not judged.
	late bool
	// core and generator are MiB that they may have at most; 0: most.
	core, generator int
}

// most is how many MiB a process may have at its peak, and how much more where the race detector's
// shadows come on top.
const (
	most      = 512
	raceTimes = 4
)

func trials() []trial {
	return slices.Concat(nodeTrials(), nameTrials(), floodTrials(), refusalTrials(), wireTrials(), pageTrials(),
		sharedTrials(), pluginTrials(), accidentTrials(), tenantTrials(), neighbourTrials(),
		identityTrials(), serverTrials())
}

// often are the trials of `go test`: cheap, and one of each kind. `make reliability` runs the
// others, too.
var often = []string{
	"node of 1.1 MB", "extensions of 1.8 MB", "name of 2 MB, SotW EDS", "requests on one stream", "two that refuse what comes",
	"plugins that are killed", "plugin that spies", "processes that leave the group",
	"800 names of secrets of 3.9 KB",
	"link to /proc in the directory", "plugins.yaml cut at few bytes", "directory written to often", "few descriptors",
}

// TestReliability runs them one by one: each needs the machine for itself.
func TestReliability(t *testing.T) {
	var rows []row
	for _, c := range trials() {
		if !*all && !slices.Contains(often, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := row{trial: c, figures: &figures{}}
			defer func() { rows = append(rows, r.ended(t)) }()
			w := newWorld(t, c, r.figures)
			began := time.Now()
			w.run()
			w.note("%v", time.Since(began).Round(time.Second))
		})
	}
	if *doc != "" {
		writeTable(t, *doc, rows)
	}
}
