// Package kube is what the plugins that follow a Kubernetes API server share: how they reach it, or
// another cluster by a kubeconfig that a Secret has, what they note of changes until these are
// published, what they say when something can't be watched, and which namespaces count.
package kube
