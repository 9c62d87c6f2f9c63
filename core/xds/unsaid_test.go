package xds

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestRepeated: of what a client repeats of a resource the values that are secret in it are not in
// the text, however it writes them, and all else is.
func TestRepeated(t *testing.T) {
	s, err := structpb.NewStruct(map[string]any{"api_key": "hunter2 \"quoted\"", "mode": "seen"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	values := redact.Values("google.protobuf.Struct", raw)
	for _, text := range []string{
		`seen: hunter2 "quoted" is bad`, `seen: {"x":"hunter2 \"quoted\""}`, "seen: hunter2+%22quoted%22",
		"seen: aHVudGVyMiAicXVvdGVkIg==",
	} {
		if got := mask.Repeated(text, values); strings.Contains(got, "hunter2") || strings.Contains(got, "aHVud") || !strings.Contains(got, "seen") {
			t.Errorf("%q: %q", text, got)
		}
	}
}
