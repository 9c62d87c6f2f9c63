// Package artifact fetches plugins, and modules for proxies, from registries of OCI artifacts, and
// keeps what it fetched by its digest, so that a plugin starts again though its registry is away.
// Nothing that a registry says is believed: each file is what the digest in plugins.yaml leads to,
// or what a key that is named there has signed.
//
// Sources: OCI Distribution Specification 1.1; OCI Image Format Specification 1.1; for signatures,
// sigstore/cosign, specs/SIGNATURE_SPEC.md, and the Sigstore bundle format 0.3.
package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/artifact/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types of what `coxswain plugins push` makes.
const (
	// Type is the artifact's.
	Type = "application/vnd.coxswain.plugin.v1"
	// ProgramType is that of a program, ModuleType of a WASI module. Source for the latter: CNCF
	// TAG Runtime, "Wasm OCI Artifact".
	ProgramType = "application/vnd.coxswain.plugin.program.v1"
	ModuleType  = "application/wasm"
	// ConfigType is that of Config.
	ConfigType = "application/vnd.coxswain.plugin.config.v1+json"
)

// Config is what an artifact says of itself.
type Config struct {
	OS           string `json:"os,omitempty"`
	Architecture string `json:"architecture,omitempty"`
}

// Source says where an artifact is, and on what terms it is taken.
type Source struct {
	Reference reference.Reference
	// Key is a file of public keys, by one of which it must be signed; empty: by none. Credentials
	// and CA are as in plugins.yaml's `pull`.
	Key, Credentials, CA string
	// PlainHTTP: the registry is spoken to in plain text, wherever it is.
	PlainHTTP bool
	// Helpers: programs that keep credentials, as Docker's configuration names them, may be run.
	Helpers bool
	// Docker is a text like Docker's config.json, in place of a file; empty and not nil: there are
	// no credentials.
	Docker []byte
	// Admits reports, as an error, why an address (IP:PORT) may not be connected to; then no proxy
	// of the environment is used. nil: as for registries that plugins.yaml names.
	Admits func(address string) error
	// Filter: it is a module for proxies. Of an image it is the file plugin.wasm, whatever the
	// image runs, and its platform doesn't count. Source: solo-io/wasm, "WebAssembly Artifact Image
	// Specification", and its variant for images of containers.
	Filter bool
	// Timeout of all, Bytes of all layers that are fetched, and of all that they are unpacked to.
	Timeout time.Duration
	Bytes   uint64
}

// Found is an artifact for this platform.
type Found struct {
	// Digest of what the reference leads to, Manifest that of the manifest for this platform.
	Digest, Manifest string
	// Module: it is a WASI module; otherwise it is a program.
	Module bool
	// Path of the file in the store, whose SHA-256 is Sum.
	Path string
	Sum  string
	// Args are arguments of a program that its image names.
	Args []string
	// Signed says which signature counts; empty: none was asked for.
	Signed string
	// Bytes of the file.
	Bytes int64
}

const (
	// mostManifest bounds a manifest or an index, mostConfig a configuration, in bytes;
	// mostSmall all configurations and signatures of an artifact; mostLayers and mostPlatforms
	// what they list.
	mostManifest  = 1 << 20
	mostConfig    = 1 << 20
	mostSmall     = mostConfig + 2*mostSignatures*mostSignature
	mostLayers    = 128
	mostPlatforms = 256
)

// Get returns an artifact, from the store as far as it is there, otherwise from its registry.
// digest, where it is given, is what the reference's tag is to mean; empty: its own digest, or what
// the registry says now.
func (s *Store) Get(ctx context.Context, src Source, digest string) (*Found, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than pull.timeout, %v", src.Timeout))
	defer cancel()
	found, err := s.get(ctx, src, digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Reference, plain(ctx, err))
	}
	return found, nil
}

// Resolve asks a registry what a reference leads to.
func (s *Store) Resolve(ctx context.Context, src Source) (string, error) {
	if d := src.Reference.Digest(); d != "" {
		return d, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than pull.timeout, %v", src.Timeout))
	defer cancel()
	d, err := (&fetcher{store: s, src: src}).resolve(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", src.Reference, plain(ctx, err))
	}
	return d, nil
}

// Check reports, as an error, what is wrong with the files that a source names.
func (src Source) Check() error {
	if src.Key != "" {
		if _, err := readKeys(src.Key); err != nil {
			return err
		}
	}
	_, err := src.client()
	return err
}

func (s *Store) get(ctx context.Context, src Source, at string) (*Found, error) {
	var keys []key
	if src.Key != "" {
		var err error
		if keys, err = readKeys(src.Key); err != nil {
			return nil, err
		}
	}
	from := &fetcher{store: s, src: src, left: src.Bytes, leftSmall: mostSmall}
	if at == "" {
		at = src.Reference.Digest()
	}
	if at == "" {
		var err error
		if at, err = from.resolve(ctx); err != nil {
			return nil, err
		}
	}
	text, err := from.manifest(ctx, digest.Digest(at))
	if err != nil {
		return nil, err
	}
	found := &Found{Digest: at, Manifest: at}
	is, err := readManifest(text)
	if err != nil {
		return nil, err
	}
	if is.index() {
		chosen, err := is.choose(runtime.GOOS, runtime.GOARCH, src.Filter)
		if err != nil {
			return nil, err
		}
		found.Manifest = chosen.Digest.String()
		if text, err = from.manifest(ctx, chosen.Digest); err != nil {
			return nil, err
		}
		if is, err = readManifest(text); err != nil {
			return nil, err
		}
		if is.index() {
			return nil, errors.New("its index lists an index, where it should list a manifest")
		}
	}
	if keys != nil {
		if found.Signed, err = from.signed(ctx, keys, found.Digest, found.Manifest); err != nil {
			return nil, err
		}
	}
	if err := from.program(ctx, is, found); err != nil {
		return nil, err
	}
	s.use(found)
	return found, nil
}

// content is a manifest or an index.
type content struct {
	MediaType    string               `json:"mediaType"`
	ArtifactType string               `json:"artifactType"`
	Config       ocispec.Descriptor   `json:"config"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
	Annotations  map[string]string    `json:"annotations"`
}

func readManifest(text []byte) (*content, error) {
	c := &content{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("its manifest is no JSON: %w", err)
	}
	switch {
	case len(c.Layers) > mostLayers:
		return nil, fmt.Errorf("it has %d layers, more than %d", len(c.Layers), mostLayers)
	case len(c.Manifests) > mostPlatforms:
		return nil, fmt.Errorf("it has %d manifests, more than %d", len(c.Manifests), mostPlatforms)
	case len(c.Layers) > 0 && len(c.Manifests) > 0:
		return nil, errors.New("its manifest has layers and manifests, and can be but one of a manifest and an index")
	}
	for _, d := range slices.Concat(c.Layers, c.Manifests, []ocispec.Descriptor{c.Config}) {
		if d.Digest == "" && d.Size == 0 {
			continue
		}
		if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 || d.Size < 0 {
			return nil, fmt.Errorf("its manifest names %.80q, which is no sha256 digest", d.Digest)
		}
	}
	return c, nil
}

// Docker's names of what OCI calls index and manifest. Source: distribution, "Image Manifest
// Version 2, Schema 2".
const (
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

func (c *content) index() bool {
	return c.MediaType == ocispec.MediaTypeImageIndex || c.MediaType == dockerIndex || c.MediaType == "" && len(c.Manifests) > 0
}

// choose returns the manifest of an index that is for a platform, or else the one of a module,
// which runs on each. any: if there is no other, it is the first.
func (c *content) choose(system, machine string, any bool) (ocispec.Descriptor, error) {
	var modules []ocispec.Descriptor
	var all []string
	for _, d := range c.Manifests {
		p := d.Platform
		switch {
		case p == nil || d.ArtifactType != "" && d.ArtifactType != Type:
			continue
		case p.OS == system && p.Architecture == machine:
			return d, nil
		case p.Architecture == "wasm":
			modules = append(modules, d)
		}
		all = append(all, p.OS+"/"+p.Architecture)
	}
	if len(modules) > 0 {
		return modules[0], nil
	}
	if any && len(c.Manifests) > 0 {
		return c.Manifests[0], nil
	}
	return ocispec.Descriptor{}, fmt.Errorf("it is for %s, and this is %s/%s", orNone(all), system, machine)
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "no platform"
	}
	return strings.Join(all[:min(len(all), 20)], ", ")
}
