// Package scenario reads scenarios: configuration, calls, and what must come of them, each with the
// document that says so. They are played on real Envoys and on the simulator.
package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// Scenario is configuration with what it does.
type Scenario struct {
	Name string `yaml:"name"`
	// See is the document that says what must happen.
	See string `yaml:"see"`
	// Config are resources. Ports and files of the test may stand in it as {{.Name}}.
	Config string `yaml:"config"`
	Calls  []Call `yaml:"calls"`
}

// Call is a request or a connection, or several, and what comes of it.
type Call struct {
	Ask  `yaml:",inline"`
	Want `yaml:",inline"`
	// Eventually: it is repeated until it is as wanted (an Envoy must notice something first).
	Eventually bool `yaml:"eventually"`
	// Envoys says why it is played on Envoys alone: what it depends on that a walk through
	// configuration can't know.
	Envoys string `yaml:"envoys"`
}

// Ask is what is asked for.
type Ask struct {
	// Get is HOST/PATH; Method and Headers are sent. With Claims it has a token whose payload they
	// are, with Token another one.
	Get     string            `yaml:"get"`
	Method  string            `yaml:"method"`
	Headers map[string]string `yaml:"headers"`
	Claims  map[string]any    `yaml:"claims"`
	Token   string            `yaml:"token"`
	// Through is the gateway: empty for the first, `second` for the other, `edge` for that of the
	// Gateway API, `ingress` for that of Ingresses.
	Through string `yaml:"through"`
	// TLS: the client opens TLS to the gateway's port that passes it through, with the host as the
	// server's name.
	TLS bool `yaml:"tls"`
	// Pod that asks, and the address (IP:PORT) that it dials, where there are pods. Without Get it
	// sends bytes.
	Pod string `yaml:"pod"`
	At  string `yaml:"at"`
	// Times is how many requests there are, one after the other, or with Together at once.
	Times    int  `yaml:"times"`
	Together bool `yaml:"together"`
}

// Want is what must come of it.
type Want struct {
	// Status of the answer, 200 if it isn't said; Statuses are all that must come where they
	// differ.
	Status   int   `yaml:"status"`
	Statuses []int `yaml:"statuses"`
	// Refused: there is no answer, because a connection isn't taken.
	Refused bool `yaml:"refused"`
	// From are the backends that answer, no other; shares in percent, 0 for any.
	From map[string]int `yaml:"from"`
	// Same: one backend answers all of them.
	Same bool `yaml:"same"`
	// Answer are headers of the answer, Seen those that the backend saw; empty: there is no such
	// header. `*` is any text.
	Answer map[string]string `yaml:"answer"`
	Seen   map[string]string `yaml:"seen"`
	// Path is what the backend saw.
	Path string `yaml:"path"`
	// Body of the answer, where no backend gives it.
	Body string `yaml:"body"`
	// Tried are the backends that saw the request, with how often, answered or not. Copies of a
	// mirror count.
	Tried map[string]int `yaml:"tried"`
	// Logged is a part of a line of the access log.
	Logged string `yaml:"logged"`
	// After is how long the answer takes at least.
	After time.Duration `yaml:"after"`
	// Clusters are those that the sidecars of pods take.
	Clusters map[string]string `yaml:"clusters"`
	// Identity is the service account that the server knows its client as; `none`: it doesn't.
	Identity string `yaml:"identity"`
}

// Load reads the scenarios of files. Each needs calls and the document that it comes from.
func Load(t testing.TB, pattern string) []Scenario {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var all []Scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []Scenario
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range list {
			if !strings.HasPrefix(s.See, "https://") || len(s.Calls) == 0 {
				t.Errorf("%s: %s: it needs calls and the document that it comes from", file, s.Name)
			}
		}
		all = append(all, list...)
	}
	return all
}
