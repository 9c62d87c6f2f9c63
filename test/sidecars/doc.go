// Package sidecars tests sidecars as they stand in a mesh: two pods, each a network namespace with
// Istio's interception rules and a stock Envoy that runs as user 1337, and a pod without a sidecar.
// Workloads know nothing of it: they listen and dial as they would alone.
//
// The rules are those of Istio's `istio-iptables`
// (https://istio.io/latest/docs/ops/deployment/application-requirements/ lists the ports;
// https://github.com/istio/istio/wiki/Understanding-IPTables-snapshot explains them), the
// certificates as SPIFFE and Istio's agent have them.
//
// testdata/scenarios says what sidecars take and where they send what. Each call is made in pods
// and walks through the sidecars' configurations on the simulator; both must agree.
package sidecars
