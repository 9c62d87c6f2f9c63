// Package reference reads names of artifacts in registries (OCI Distribution Specification 1.1).
package reference

import (
	"errors"
	"regexp"
	"strings"
)

// Reference names an artifact in a registry of OCI artifacts:
// oci://REGISTRY/NAME[:TAG][@sha256:DIGEST].
type Reference string

// longest bounds a reference, in bytes.
const longest = 512

// Source: OCI Distribution Specification 1.1, "Pulling manifests", for names and tags.
var pattern = regexp.MustCompile(`^oci://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?)` +
	`/([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`)

// UnmarshalText checks a reference.
func (r *Reference) UnmarshalText(text []byte) error {
	if len(text) > longest || !pattern.Match(text) {
		return errors.New("want oci://REGISTRY/NAME:TAG@sha256:DIGEST, such as oci://registry.example.org/team/headers:1.4, " +
			"with a name in lower case and no credentials in it") // which it may have, so that it isn't repeated
	}
	*r = Reference(text)
	return nil
}

func (r Reference) part(i int) string {
	if m := pattern.FindStringSubmatch(string(r)); m != nil {
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
