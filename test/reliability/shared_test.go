package reliability

import (
	"slices"

	"golang.org/x/net/http2"
)

// sharedTrials misuse one port for pages and xDS: by what is for nobody, and by what the ports of
// their own are misused by.
func sharedTrials() []trial {
	all := []trial{
		{name: "10,000 half prefaces", promise: wirePromise, do: func(w *world) {
			w.connections(10_000, func() string { return w.plane.XDS }, http2.ClientPreface[:12])
			w.ready()
		}},
		{name: "garbage", promise: wirePromise, do: func(w *world) {
			w.connections(10_000, func() string { return w.plane.XDS }, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
			w.ready()
		}},
	}
	again := []string{
		"10,000 silent connections", "connections that fall silent", "clients that never read", "pings and settings", "headers without end",
		"pages that nobody reads", "slow requests of pages",
	}
	for _, t := range slices.Concat(wireTrials(), pageTrials()) {
		if slices.Contains(again, t.name) {
			all = append(all, t)
		}
	}
	for i := range all {
		all[i].shared = true
		all[i].name += ", one port"
	}
	return all
}
