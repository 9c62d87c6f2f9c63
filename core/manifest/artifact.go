package manifest

import (
	"fmt"

	artifacts "github.com/coxswain-mesh/coxswain/internal/artifact/reference"
)

// Reference names an artifact in a registry: oci://REGISTRY/NAME[:TAG][@sha256:DIGEST].
type Reference = artifacts.Reference

// Artifact is what an entry's `plugin` was found to be.
type Artifact struct {
	// Declared is the entry as plugins.yaml has it.
	Declared *Entry
	// Digest of the manifest that the reference led to, for all platforms or for this one, as
	// sha256:DIGEST.
	Digest string
	// Signed is what signed it, for people; empty: nothing that was asked for.
	Signed string
}

// Fetched returns the entry with what its artifact was found to be, in a file whose SHA-256 is sum:
// a module or a program. args go before those of the entry.
func (e *Entry) Fetched(is Artifact, module bool, path string, sum Digest, args []string) (*Entry, error) {
	declared := e.Declaration()
	is.Declared = declared
	on := *declared
	on.Artifact = &is
	switch {
	case module && declared.Process != nil:
		return nil, fmt.Errorf("%s is a module, and the entry has `process`; say `wasm` there", declared.Plugin)
	case !module && declared.Wasm != nil:
		return nil, fmt.Errorf("%s is a program, and the entry has `wasm`; say `process` there", declared.Plugin)
	case module:
		w := Wasm{}
		if declared.Wasm != nil {
			w = *declared.Wasm
		}
		w.Path, w.SHA256 = path, sum
		on.Wasm = &w
	default:
		p := Process{}
		if declared.Process != nil {
			p = *declared.Process
		}
		p.Command, p.Args = path, append(append([]string(nil), args...), p.Args...)
		on.Process, on.SHA256 = &p, sum
	}
	return &on, nil
}

// Declaration is the entry as plugins.yaml has it, also of one that was fetched.
func (e *Entry) Declaration() *Entry {
	if e.Artifact != nil {
		return e.Artifact.Declared
	}
	return e
}

// ArtifactDigest is what an entry's `plugin` leads to, as far as that is known; empty: it isn't, or
// there is none.
func (e *Entry) ArtifactDigest() string {
	if e.Artifact != nil {
		return e.Artifact.Digest
	}
	return e.Plugin.Digest()
}
