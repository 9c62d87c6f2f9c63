// Package tools runs istioctl and Kiali's server, by which people look at a mesh, against an istiod
// and against Coxswain, and compares what they show. Each control plane is installed by its own
// chart into a cluster of its own, with the same objects and the same pods, which it injects.
//
// The cluster is etcd, an API server and its controllers; test/kit/node plays its machine. What
// runs in its pods is real: pilot-discovery, Coxswain, pilot-agent with its iptables rules, a stock
// Envoy.
package tools
