package sched

import (
	"testing"
	"time"
)

// While this process is stopped, nobody's time counts.
func TestMeterThatWasStopped(t *testing.T) {
	at := time.Now()
	m := NewMeter(0, time.Second, at)
	if got := m.Lost(at.Add(time.Second), true); got != 0 {
		t.Errorf("in time: %s", got)
	}
	if got := m.Lost(at.Add(time.Minute+time.Second), true); got != 59*time.Second {
		t.Errorf("a minute late: %s", got)
	}
}
