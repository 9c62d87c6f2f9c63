// Package simulator walks through what an Envoy is configured with, as the Envoy would with a
// connection and a request, and says where they go and why: which listener and filter chain, which
// virtual host and route, which clusters and endpoints with which shares, or which answer.
//
//	config, err := simulator.Read(dump) // of /config_dump?include_eds, an Envoy's or the control plane's
//	outcome := config.Walk(simulator.Connection{Destination: netip.MustParseAddrPort("10.0.0.1:80")}, &simulator.Request{Host: "web"})
//	fmt.Print(outcome)
//
// It follows Envoy's documentation (https://www.envoyproxy.io/docs/envoy/latest/). It is pure: no
// clock, no network, no proxy. What depends on what it can't know (scripts, servers that are asked,
// signatures, chance) is named in Outcome.Assumes and assumed to go well; what depends on the past
// (retries, ejected hosts, full queues) is left out.
package simulator
