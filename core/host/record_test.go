package host

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// TestRecordingHidesTheEnvironment: what a plugin repeats of the variables that are declared for
// it, or that it is allowed, is not in a recording.
func TestRecordingHidesTheEnvironment(t *testing.T) {
	h := &Host{launcher: &launcher{variables: []string{"UPSTREAM=its-address", "OTHER=not-its-own"}}}
	e := &manifest.Entry{
		Name:    "a",
		Process: &manifest.Process{Env: map[string]string{"API_TOKEN": "open-sesame", "DSN": "user:words@db"}},
		Allow:   &manifest.Allow{Env: []string{"UPSTREAM"}},
	}
	var file bytes.Buffer
	if _, err := h.Record("a", recording.NewWriter(&file, "a", 1<<20)); err != nil {
		t.Fatal(err)
	}
	core, plugin := session.Pipe()
	said := &pb.FromPlugin{Log: &pb.Log{
		Text: "open-sesame and not-its-own", Fields: map[string]string{"dsn": "can't reach user:words@db", "upstream": "its-address"},
	}}
	go func() { _ = plugin.Send(said.AppendTo(nil)) }()
	frame, err := h.tapped(e, core).Recv()
	if err != nil || !bytes.Equal(frame, said.AppendTo(nil)) {
		t.Fatalf("the core is told %q, %v", frame, err)
	}
	r, err := recording.Read(&file)
	if err != nil || len(r.Sessions) != 1 || len(r.Sessions[0]) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	written := string(r.Sessions[0][0].Frame)
	for _, secret := range []string{"open-sesame", "user:words@db", "its-address"} {
		if strings.Contains(written, secret) {
			t.Errorf("%s is recorded: %q", secret, written)
		}
	}
	if !strings.Contains(written, recording.Masked+" and not-its-own") {
		t.Errorf("recorded is %q", written)
	}
}
