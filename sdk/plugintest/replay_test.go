package plugintest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// conversation is what was said, by *pb.FromCore and *pb.FromPlugin.
func conversation(said ...any) *recording.Recording {
	var s recording.Session
	for _, m := range said {
		switch m := m.(type) {
		case *pb.FromCore:
			s = append(s, recording.Message{FromCore: true, Frame: m.AppendTo(nil)})
		case *pb.FromPlugin:
			s = append(s, recording.Message{Frame: m.AppendTo(nil)})
		}
	}
	return &recording.Recording{Plugin: "a", Sessions: []recording.Session{s}}
}

// shouting is a patch that appends a text to each body.
func shouting(text string) sdk.PatchPlugin {
	patch := func(_ *state.State, _ string, _ map[string]string, given []sdk.Resource) (out []sdk.Resource, removed []string, err error) {
		for _, r := range given {
			if strings.HasPrefix(r.Name, ".") {
				removed = append(removed, r.Name)
			} else {
				out = append(out, sdk.Resource{Name: r.Name, Body: append(r.Body, text...)})
			}
		}
		return out, removed, nil
	}
	return sdk.PatchPlugin{
		Name: "shouting", Types: []sdk.Type{{Url: "example.com/Text"}},
		New: sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(patch), nil }),
	}
}

func TestReplayPatch(t *testing.T) {
	r := conversation(
		&pb.FromCore{Hello: &pb.Hello{Versions: []uint32{1}}},
		&pb.FromPlugin{Ready: &pb.Ready{Version: 1, Plugin: "shouting", Kind: pb.KindPatch, Types: []*pb.Type{{Url: "example.com/Text"}}}},
		&pb.FromCore{Patch: &pb.Patch{Id: 1, Type: "example.com/Text", Resources: []*pb.Resource{{Name: "a", Bytes: []byte("hi")}, {Name: ".b"}}}},
		&pb.FromCore{Patch: &pb.Patch{Id: 2, Type: "example.com/Text", Resources: []*pb.Resource{{Name: "c", Bytes: []byte("ho")}}}},
		&pb.FromPlugin{Patched: &pb.Patched{Id: 2, Resources: []*pb.Resource{{Name: "c", Bytes: []byte("ho!")}}}},
		&pb.FromPlugin{Patched: &pb.Patched{Id: 1, Resources: []*pb.Resource{{Name: "a", Bytes: []byte("hi!")}}, Removes: []string{".b"}}},
		&pb.FromCore{Drain: &pb.Drain{}},
	)
	same := plugintest.Replay(plugintest.Memory(shouting("!")), r, nil)[0]
	if !same.Passed() {
		t.Errorf("the same plugin fails: %v", same.Failures)
	}
	if i := len(same.Timings) - 1; same.Timings[i].What != "Patch, Patched" || same.Timings[i].Now.Count != 2 {
		t.Errorf("timings are %+v", same.Timings)
	}
	other := plugintest.Replay(plugintest.Memory(shouting("?")), r, nil)[0]
	if text := strings.Join(other.Failures, "\n"); !strings.Contains(text, "message 4, core   -> Patch{id 2") ||
		!strings.Contains(text, `patch 1 of "a" has other bytes`) {
		t.Errorf("another plugin: %s", text)
	}
}

// naming is a deriver of a workload for each namespace.
func naming(suffix string) sdk.DeriverPlugin {
	derive := func(_ context.Context, change *state.Change, out sdk.Publisher) error {
		for _, name := range change.Keys[state.Namespaces] {
			w := sdk.WorkloadRow(&sdk.Workload{Namespace: name, Name: "default" + suffix})
			if err := out.Update(state.Workloads, []*sdk.Row{w}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return sdk.DeriverPlugin{
		Name: "naming", Reads: []string{state.Namespaces}, Publishes: []string{state.Workloads},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return sdk.DeriverFunc(derive), nil }),
	}
}

func TestReplayDeriver(t *testing.T) {
	at := func(n uint64) *pb.Revision { return &pb.Revision{Epoch: 99, Number: n} }
	state := func(n uint64, whole bool, name string) *pb.FromCore {
		rows := []*pb.TableRows{{Table: state.Namespaces, Upserts: []*pb.Row{sdk.NamespaceRow(&pb.Namespace{Name: name})}}}
		return &pb.FromCore{State: &pb.State{Revision: at(n), Whole: whole, Tables: rows}}
	}
	rows := func(n uint64, name string) *pb.FromPlugin {
		w := sdk.WorkloadRow(&sdk.Workload{Namespace: name, Name: "default"})
		return &pb.FromPlugin{Rows: &pb.Rows{Revision: at(n), Tables: []*pb.TableRows{{Table: "workloads", Upserts: []*pb.Row{w}}}}}
	}
	done := func(n uint64) *pb.FromPlugin { return &pb.FromPlugin{Done: &pb.Done{Revision: at(n)}} }
	r := conversation(
		&pb.FromPlugin{Ready: &pb.Ready{Version: 1, Plugin: "naming", Kind: pb.KindRegistry, Publishes: []string{"workloads"}, Derives: true}},
		state(3, true, "a"), rows(3, "a"), done(3), state(4, false, "b"), state(5, false, "c"), rows(5, "b"), rows(5, "c"), done(5),
	)
	if same := plugintest.Replay(plugintest.Memory(naming("")), r, nil)[0]; !same.Passed() {
		t.Errorf("the same plugin fails: %v", same.Failures)
	}
	other := plugintest.Replay(plugintest.Memory(naming("s")), r, nil)[0]
	if text := strings.Join(other.Failures, "\n"); !strings.Contains(text, "after message 2, core   -> State{revision 3") ||
		!strings.Contains(text, "workloads a/default is gone") {
		t.Errorf("another plugin: %s", text)
	}
}

// TestReplaySecrets: rows of which the recording has hashes are compared by these, whoever said
// that they are secrets.
func TestReplaySecrets(t *testing.T) {
	source := func(payload string) plugintest.Target {
		return plugintest.Memory(sdk.ConfigSourcePlugin{
			Name: "accounts", Publishes: []string{"example.com/Account"},
			New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) {
				return sdk.ConfigSourceFunc(func(_ context.Context, out sdk.Publisher) error {
					row := &sdk.Row{Key: "a", Payload: []byte(payload), Annotations: map[string]string{"applied": payload}}
					return errors.Join(out.Update("example.com/Account", []*sdk.Row{row}, nil), out.Synced())
				}), nil
			}),
		})
	}
	row := &pb.Row{Key: "a", Payload: recording.Hash([]byte("password")), Annotations: map[string]string{"applied": recording.Masked}}
	r := conversation(
		&pb.FromPlugin{Ready: &pb.Ready{Version: 1, Plugin: "accounts", Kind: pb.KindConfig, Publishes: []string{"example.com/Account"}}},
		&pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "example.com/Account", Upserts: []*pb.Row{row}}}}},
		&pb.FromPlugin{Synced: &pb.Synced{}},
	)
	if same := plugintest.Replay(source("password"), r, nil)[0]; !same.Passed() {
		t.Errorf("the same plugin fails: %v", same.Failures)
	}
	other := plugintest.Replay(source("other"), r, nil)[0]
	if text := strings.Join(other.Failures, "\n"); !strings.Contains(text, "example.com/Account a has other bytes") {
		t.Errorf("another plugin: %s", text)
	}
}

// TestReplayAuthenticator: nobody can be authenticated with masked credentials, and that is said.
func TestReplayAuthenticator(t *testing.T) {
	r := conversation(
		&pb.FromPlugin{Ready: &pb.Ready{Version: 1, Plugin: "none", Kind: pb.KindAuthenticator}},
		&pb.FromCore{Authenticate: &pb.Authenticate{Id: 1, Headers: map[string]string{"authorization": recording.Masked}}},
		&pb.FromPlugin{Caller: &pb.Caller{Id: 1, Identities: []string{"spiffe://a/ns/b/sa/c"}}},
	)
	none := sdk.AuthenticatorPlugin{Name: "none", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
		return sdk.AuthenticatorFunc(func(context.Context, sdk.Credentials) ([]string, error) { return nil, errors.New("nobody") }), nil
	})}
	got := plugintest.Replay(plugintest.Memory(none), r, nil)[0]
	if !got.Passed() || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "masked") {
		t.Errorf("%+v", got)
	}
}

// TestReplayGarbage: a recording that was damaged fails the replay and nothing else.
func TestReplayGarbage(t *testing.T) {
	r := &recording.Recording{Sessions: []recording.Session{{{Frame: []byte{0xff}}}, {{FromCore: true, Frame: []byte{0xff}}, {Frame: nil}}, {}}}
	for i, got := range plugintest.Replay(plugintest.Memory(shouting("!")), r, nil) {
		if got.Passed() {
			t.Errorf("session %d passes", i+1)
		}
	}
}
