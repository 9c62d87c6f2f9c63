// Package live lets real Envoys judge what is served: for each recorded configuration and each of
// its proxies, an Envoy over ADS must refuse nothing, miss nothing and start its workers.
//
// Each Envoy runs in a network namespace of its own, as the proxy that was recorded: with an
// agent's node, and an agent beside it, which is the test's. It passes ADS on to the control plane
// and serves secrets.
//
// testdata has cases of our own, in the same form, for what istiod wasn't asked for: parts that
// plugins.yaml switches on, settings of the mesh. `says` are what the configuration that Envoy then
// has must contain.
//
// The same configurations, edited at random, show that what a running control plane serves, over
// either protocol, is what one that starts then would.
package live
