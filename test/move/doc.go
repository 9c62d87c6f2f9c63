// Package move walks through docs/kubernetes.md as its readers do: its commands run in order in a
// cluster with an istiod of Istio's own charts, whose webhooks refuse what they can't answer, and
// with pods and a gateway that they have injected, which carry requests all the while. Coxswain
// comes up beside istiod, namespaces move one by one, istiod's releases are removed, and all of it
// is brought back.
//
// The cluster is etcd, an API server and its controllers; test/kit/node plays its machine. What
// runs in its pods is real: pilot-discovery, pilot-agent with its iptables rules, Coxswain. In two
// places something stands for what a cluster has: Envoy is a stock one, without the filters that
// Istio's build of it has, which an EnvoyFilter takes away; and connections to Services that no
// sidecar carries go through the machine (node.Forward), in place of kube-proxy.
package move
