package plugintest

import (
	"context"
	"io"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Target is a plugin and how it is run.
type Target struct {
	// Carrier is memory, process or wasm.
	Carrier string
	// Patience multiplies all times in which something must happen, where the machine is slow or
	// busy; 0: 1, or 3 where the race detector runs.
	Patience float64
	// HTTP names what a module may call, as allow.http in plugins.yaml does.
	HTTP []string
	// Files are the absolute paths that a module may read and, without :ro at the end, write, as
	// allow.files does.
	Files []string
	// rowBytes is how many bytes a row may have; 0: as many as a message has room for.
	rowBytes int
	name     string
	open     func(stderr io.Writer) (*running, error)
}

// running is a plugin that was started.
type running struct {
	carrier session.Carrier
	// ended gets one value when the plugin has ended; for a process that is the end of the process.
	ended chan error
	// abandon does what a core's death does; stop ends the plugin however it can; hasten, which may
	// be nil, ends a process whose session is over.
	abandon, stop, hasten func()
}

// Memory runs a plugin in the test's own process.
func Memory(p sdk.Declaration) Target {
	return Target{Carrier: "memory", name: sdk.Name(p), open: func(io.Writer) (*running, error) {
		core, plugin := session.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		r := &running{carrier: core, ended: make(chan error, 1), abandon: func() { _ = core.Close() }, stop: cancel}
		go func() { r.ended <- sdk.Run(ctx, p, plugin) }()
		return r, nil
	}}
}
