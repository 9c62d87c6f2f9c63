// Package istio is what Istio's words mean, whoever reads them: who sees a resource (exportTo),
// which names a host stands for, whom a selector or a policy is for, and what identities of
// workloads and ids of proxies say. Generators, registries, authenticators, analysis and the
// command share it, so that all of them mean the same.
//
// It is pure: texts and labels in, answers out. Nothing in it reads rows, settings or the network.
package istio
