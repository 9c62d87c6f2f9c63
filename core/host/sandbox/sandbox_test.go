package sandbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReport: what could not be taken from a process is told, with the reason.
func TestReport(t *testing.T) {
	var r Report
	r.note(nil, "read others' files")
	r.note(errors.New("no Landlock"), "connect")
	want := Report{InForce: []string{"read others' files"}, Lacking: []string{"connect: no Landlock"}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}
