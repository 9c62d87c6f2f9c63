package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Reference names an artifact in a registry of OCI artifacts:
// oci://REGISTRY/NAME[:TAG][@sha256:DIGEST].
type Reference string

// longestReference bounds a reference, in bytes.
const longestReference = 512

// Source: OCI Distribution Specification 1.1, "Pulling manifests", for names and tags.
var referencePattern = regexp.MustCompile(`^oci://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?)` +
	`/([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`)

// UnmarshalText checks a reference.
func (r *Reference) UnmarshalText(text []byte) error {
	if len(text) > longestReference || !referencePattern.Match(text) {
		return errors.New("want oci://REGISTRY/NAME:TAG@sha256:DIGEST, such as oci://registry.example.org/team/headers:1.4, " +
			"with a name in lower case and no credentials in it") // which it may have, so that it isn't repeated
	}
	*r = Reference(text)
	return nil
}

func (r Reference) part(i int) string {
	if m := referencePattern.FindStringSubmatch(string(r)); m != nil {
		return m[i]
	}
	return ""
}

// Registry is its host, with a port where there is one.
func (r Reference) Registry() string { return r.part(1) }

// Repository is the name of the artifact within its registry.
func (r Reference) Repository() string { return r.part(2) }

// Tag is empty where the reference has none.
func (r Reference) Tag() string { return r.part(3) }

// Digest is sha256:DIGEST, or empty where the reference has none.
func (r Reference) Digest() string { return r.part(4) }

// At is the reference with a digest.
func (r Reference) At(digest string) Reference { return r.Loose() + Reference("@"+digest) }

// Loose is the reference without its digest.
func (r Reference) Loose() Reference {
	loose, _, _ := strings.Cut(string(r), "@")
	return Reference(loose)
}

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
