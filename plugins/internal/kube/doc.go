// Package kube is what the plugins that follow a Kubernetes API server share: how they reach it, what they note of changes until these are
// published, what they say when something can't be watched, and which namespaces count.
package kube
