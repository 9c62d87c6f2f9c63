package manifest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultsOfLimits: what an entry doesn't say is as the page has it, and what it says stays.
func TestDefaultsOfLimits(t *testing.T) {
	want := Limits{
		Compile: 10 * time.Minute, Start: 30 * time.Second, Configure: 30 * time.Second, Sync: time.Minute, Revision: 30 * time.Second,
		Call: 5 * time.Second, Progress: 30 * time.Second, Stop: 5 * time.Second,
		OpenFiles: 4096, Rows: 1_000_000, Bytes: 512 << 20, Bodies: 1 << 30, RowBytes: 1 << 20, MessageBytes: 1 << 20,
	}
	var got Limits
	got.fill(false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = Limits{Revision: time.Second, Rows: 1}
	got.fill(true)
	want.Configure, want.Revision, want.Rows = 2*time.Minute, time.Second, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of a module that says some (-want +got):\n%s", diff)
	}
}
