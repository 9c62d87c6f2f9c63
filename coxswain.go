// Package coxswain is a control plane for Envoy and every other xDS client, made of plugins. This
// package holds only what the program, cmd/coxswain, carries with it: the sets of plugins that run
// where no other is named, the SDK that it was built with, and what changed with each version.
package coxswain

import (
	"embed"
	"io/fs"
)

//go:embed plugins.yaml
var defaultSet []byte

// DefaultSet returns the repository's plugins.yaml.
func DefaultSet() []byte { return append([]byte(nil), defaultSet...) }

//go:embed deploy/kubernetes/plugins.yaml
var kubernetesSet []byte

// KubernetesSet returns the repository's deploy/kubernetes/plugins.yaml: what runs in a Kubernetes
// cluster.
func KubernetesSet() []byte { return append([]byte(nil), kubernetesSet...) }

//go:embed deploy/kubernetes/rights.yaml deploy/kubernetes/webhooks.yaml deploy/kubernetes/signers.yaml
//go:embed deploy/kubernetes/trustbundles.yaml deploy/kubernetes/gateways.yaml deploy/kubernetes/registration.yaml
//go:embed deploy/kubernetes/analysis.yaml deploy/kubernetes/untaint.yaml deploy/kubernetes/exports.yaml
var rights embed.FS

// Rights returns a file of deploy/kubernetes that says what a control plane may do in a cluster:
// rights, webhooks, signers, trustbundles, gateways, registration, analysis, untaint or exports.
func Rights(name string) ([]byte, error) {
	return rights.ReadFile("deploy/kubernetes/" + name + ".yaml")
}

//go:embed CHANGELOG.md
var changes string

// Changes returns the repository's CHANGELOG.md: what users notice, by version.
func Changes() string { return changes }

//go:embed LICENSE go.mod go.sum sdk internal/nearest internal/strict
var sdk embed.FS

// SDK returns the Go module as far as plugins need it: go.mod, go.sum, LICENSE, the folder sdk and
// what it imports.
func SDK() fs.FS { return sdk }
