package show

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/host/load"
)

// TestLoadBetween: rates are of the time between two readings, and of one process.
func TestLoadBetween(t *testing.T) {
	times := func(n uint64) load.Times { return append(make(load.Times, 18), n) }
	before := admin.Plugin{Name: "a", PID: 7, Load: load.Load{Calls: 10, BytesIn: 1000, CPUSeconds: 1, Times: times(1)}}
	now := admin.Plugin{Name: "a", PID: 7, Memory: 3e6, Load: load.Load{Calls: 30, Errors: 2, BytesIn: 5000, CPUSeconds: 2, Lag: .25, Times: times(3)}}
	l := loadBetween(before, now, 2*time.Second)
	if l.Calls != 30 || l.CallsPerSecond != 10 || l.BytesIn != 2000 || l.CPUPercent != 50 || l.P99 != 30 {
		t.Errorf("%+v", l)
	}
	var b strings.Builder
	Loads(&b, []Load{l})
	if !strings.Contains(b.String(), "30\t10.0\t2\t30s\t30s\t2.0 kB\t-\t250ms\t50.0%\t3.0 MB") {
		t.Error(b.String())
	}
	now.PID = 8
	if l := loadBetween(before, now, time.Second); l.CPUPercent != 0 {
		t.Errorf("another process has used %v %%", l.CPUPercent)
	}
	if l := loadBetween(admin.Plugin{}, admin.Plugin{Name: "new"}, time.Second); l.P50 != 0 || l.Calls != 0 {
		t.Errorf("%+v", l)
	}
}
