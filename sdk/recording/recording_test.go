package recording_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// TestSecrets: none of the places in which a secret may be has it in a recording.
func TestSecrets(t *testing.T) {
	const secret = "s3cret-word"
	bytesOf := []byte(secret)
	ready := &pb.FromPlugin{Ready: &pb.Ready{
		Types: []*pb.Type{{Url: "example.com/Own", Traits: &pb.Traits{Sensitive: true}}}, Secrets: []string{"example.com/Own"},
	}}
	var tables recording.SecretTables
	tables.Declare(&pb.Ready{Plugin: "another", Secrets: []string{"example.com/Anothers"}})
	rows := []*pb.TableRows{{Table: "example.com/Own"}, {Table: "example.com/Anothers"}, {Table: "secrets"}, {Table: "example.com/MySecretThing"}}
	for _, t := range rows {
		t.Upserts = []*pb.Row{{Key: "a", Payload: bytesOf, Annotations: map[string]string{"applied": secret}}}
	}
	fromCore := map[string]*pb.FromCore{
		"config":      {Hello: &pb.Hello{Config: []byte(`{"deep": [{"password": "` + secret + `"}]}`), Grants: bytesOf}},
		"credentials": {Authenticate: &pb.Authenticate{Headers: map[string]string{"authorization": "Bearer " + secret}, Certificates: [][]byte{bytesOf}}},
		"rows":        {State: &pb.State{Tables: rows}},
		"patch":       {Patch: &pb.Patch{Type: secretType, Resources: []*pb.Resource{{Name: "a", Bytes: bytesOf}}}},
		"own patch":   {Patch: &pb.Patch{Type: "example.com/Own", Resources: []*pb.Resource{{Name: "a", Bytes: bytesOf}}}},
		"response":    {Fetched: &pb.Fetched{Headers: map[string]string{"set-cookie": secret}, Body: bytesOf}},
		"store":       {Store: &pb.Store{Object: bytesOf}},
		"stored":      {Stored: &pb.Stored{Object: bytesOf, Objects: [][]byte{bytesOf}, Error: "not " + secret}},
	}
	fromPlugin := map[string]*pb.FromPlugin{
		"rows":    {Rows: &pb.Rows{Tables: rows}},
		"bodies":  {Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: bytesOf}}}},
		"patched": {Patched: &pb.Patched{Resources: []*pb.Resource{{Name: "a", Bytes: bytesOf}}}},
		"answer":  {Answer: &pb.Answer{Resources: []*pb.Resource{{Name: "a", Bytes: bytesOf}}}},
		"store":   {Store: &pb.Store{Object: bytesOf}},
		"stored":  {Stored: &pb.Stored{Object: bytesOf, Objects: [][]byte{bytesOf}, Error: "not " + secret}},
		"log":     {Log: &pb.Log{Text: "it is " + secret, Fields: map[string]string{"token": secret}}},
		"refusal": {Caller: &pb.Caller{Refusal: secret + " is unknown", Failure: secret}},
		"refused": {Refused: &pb.Refused{Field: "password", Reason: "not " + secret}},
		"fault":   {Done: &pb.Done{Faults: []*pb.Fault{{What: secret, Reason: secret}}}},
		"request": {Fetch: &pb.Fetch{Url: "http://example.com?key=" + secret, Headers: map[string]string{"authorization": secret}, Body: bytesOf}},
	}
	var file bytes.Buffer
	add := recording.NewWriter(&file, "a", 1<<20).Session(&tables)
	add(true, fromCore["config"].AppendTo(nil))
	add(false, ready.AppendTo(nil))
	for _, m := range fromCore {
		add(true, m.AppendTo(nil))
	}
	for _, m := range fromPlugin {
		add(false, m.AppendTo(nil))
	}
	r, err := recording.Read(&file)
	if err != nil || len(r.Sessions) != 1 {
		t.Fatalf("%v, %d sessions", err, len(r.Sessions))
	}
	if got, want := len(r.Sessions[0]), 2+len(fromCore)+len(fromPlugin); got != want {
		t.Fatalf("%d messages of %d were recorded", got, want)
	}
	for i, m := range r.Sessions[0] {
		if bytes.Contains(m.Frame, bytesOf) {
			t.Errorf("message %d has the secret: %q", i+1, m.Frame)
		}
	}
}

// TestResources: secrets in rows and in resources are in no recording, also where a resource is an
// edit of another or comes in pieces; what is no secret is.
func TestResources(t *testing.T) {
	const secret = "s3cret-word"
	entry := func(name string) []byte { // of a map, as google.protobuf.Struct has it
		return []byte("\x0a\x1c\x0a\x08" + name + "\x12\x10\x12\x0es3cret-word-12")
	}
	all := slices.Concat([]byte("\x12\x04seen"), entry("password"))
	plain := slices.Concat([]byte("\x12\x04seen"), entry("harmless"))
	head, tail := uint64(10), uint64(18)
	messages := []*pb.FromPlugin{
		{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "a", Upserts: []*pb.Row{{Key: "a", Payload: all}}}}}},
		{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: all}}}},
		{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 2, Base: 1, Head: uint64(len(all)) - 14, Bytes: []byte(secret + "-34")}}}},
		{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 3, Bytes: plain}}}},
		{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 4, Base: 3, Head: head, Tail: tail, Bytes: []byte("password")}}}},
		{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 5, Bytes: all[:20], More: true}, {Id: 5, Bytes: all[20:]}}}},
		{Patched: &pb.Patched{Resources: []*pb.Resource{{Name: "a", Bytes: all}}}},
	}
	var file bytes.Buffer
	add := recording.NewWriter(&file, "a", 1<<20).Session(&recording.SecretTables{})
	for _, m := range messages {
		add(false, m.AppendTo(nil))
	}
	r, err := recording.Read(&file)
	if err != nil || len(r.Sessions[0]) != len(messages) {
		t.Fatal(err)
	}
	for i, m := range r.Sessions[0] {
		const third = 3 // is of the name harmless
		if found := bytes.Contains(m.Frame, []byte(secret)); found != (i == third) {
			t.Errorf("message %d has the secret: %v: %q", i+1, found, m.Frame)
		}
		if i != 5 && !bytes.Contains(m.Frame, []byte("seen")) {
			t.Errorf("message %d has lost what is no secret: %q", i+1, m.Frame)
		}
	}
}

// TestPlain: what is no secret is recorded as it is.
func TestPlain(t *testing.T) {
	var file bytes.Buffer
	add := recording.NewWriter(&file, "a", 1<<20).Session(&recording.SecretTables{})
	frames := [][]byte{
		(&pb.FromPlugin{Ready: &pb.Ready{Plugin: "a", Types: []*pb.Type{{Url: "example.com/Plain"}}}}).AppendTo(nil),
		(&pb.FromPlugin{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: []byte("text")}}}}).AppendTo(nil),
		(&pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "services", Upserts: []*pb.Row{{Key: "a", Payload: []byte("row")}}}}}}).AppendTo(nil),
	}
	for _, f := range frames {
		add(false, f)
	}
	r, err := recording.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Sessions[0] {
		if m.FromCore || !bytes.Equal(m.Frame, frames[i]) {
			t.Errorf("message %d is %+v, want %q", i+1, m, frames[i])
		}
	}
}

// TestLimit: a recording that is full says so, and nothing comes after.
func TestLimit(t *testing.T) {
	var file bytes.Buffer
	w := recording.NewWriter(&file, "a", 1000)
	add := w.Session(&recording.SecretTables{})
	for range 100 {
		add(false, (&pb.FromPlugin{Log: &pb.Log{Text: "text"}}).AppendTo(nil))
	}
	select {
	case <-w.Over():
	default:
		t.Fatal("the recording goes on")
	}
	if file.Len() > 1200 {
		t.Errorf("%d bytes", file.Len())
	}
	r, err := recording.Read(&file)
	if err != nil || len(r.Sessions[0]) == 0 || !strings.Contains(r.Note, "limit of 1000 bytes") {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestRead: what was cut off is read up to there, what is no recording is refused.
func TestRead(t *testing.T) {
	const head = `{"recording":1,"plugin":"a","began":"2026-01-02T03:04:05Z"}` + "\n"
	for _, c := range []struct {
		name, text, fault string
		messages          int
	}{
		{"cut off", head + `{"session":1,"at":1,"frame":"aGk="}` + "\n" + `{"session":1,"at":2,"fra`, "", 1},
		{"nothing", "", "no recording", 0},
		{"another file", "plugins: []", "no recording", 0},
		{"another version", `{"recording":2}`, "no recording", 0},
		{"a session from nowhere", head + `{"session":7}`, "message 1: session 7", 0},
		{"odd line", head + `[]`, "message 1", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := recording.Read(strings.NewReader(c.text))
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%v, want %q", err, c.fault)
				}
				return
			}
			if err != nil || len(r.Sessions[0]) != c.messages || r.Plugin != "a" {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
}
