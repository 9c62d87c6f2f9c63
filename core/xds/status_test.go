package xds

import (
	"testing"
	"time"
)

// TestRefusedSince: what a client refuses again and again it refuses since the first time, until it
// has accepted what makes up for it.
func TestRefusedSince(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	w := &watch{flights: []flight{{nonce: "1", since: at(1)}, {nonce: "2", since: at(2)}, {nonce: "3", since: at(3), clears: true}}}
	reason := "no such filter"
	for i, c := range []struct {
		nonce   string
		refused *string
		want    time.Time
	}{{"1", &reason, at(1)}, {"2", &reason, at(1)}, {"3", nil, time.Time{}}} {
		w.flights[len(w.flights)-1].clears = true
		w.record(c.nonce, c.refused)
		if got := w.status().RefusedAt; !got.Equal(c.want) {
			t.Errorf("answer %d: refused since %s, want %s", i, got, c.want)
		}
	}
}
