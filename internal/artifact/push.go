package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// File is a program or module that is pushed.
type File struct {
	Path string
	// OS and Architecture of a program, as Go names them; empty for a module, which runs on each.
	OS, Architecture string
}

// Push puts an artifact into its registry: a module, or a program for each platform. It returns the
// digest that the reference leads to.
func Push(ctx context.Context, src Source, files []File, annotations map[string]string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than %v", src.Timeout))
	defer cancel()
	d, err := push(ctx, src, files, annotations)
	if err != nil {
		return "", fmt.Errorf("%s: %w", src.Reference, plain(ctx, err))
	}
	return d.Digest.String(), nil
}

func push(ctx context.Context, src Source, files []File, annotations map[string]string) (ocispec.Descriptor, error) {
	if err := checkFiles(files, src.Bytes); err != nil {
		return ocispec.Descriptor{}, err
	}
	repo, err := src.repository()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, ArtifactType: Type, Annotations: annotations}
	for _, f := range files {
		d, err := pushFile(ctx, repo, f, annotations)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		index.Manifests = append(index.Manifests, d)
	}
	last := index.Manifests[0]
	if len(files) > 1 {
		if last, err = pushJSON(ctx, repo, ocispec.MediaTypeImageIndex, index); err != nil {
			return last, err
		}
	}
	if tag := src.Reference.Tag(); tag != "" {
		err = repo.Tag(ctx, last, tag)
	}
	return last, err
}

// pushFile pushes a file with the manifest that it is an artifact by.
func pushFile(ctx context.Context, repo *remote.Repository, f File, annotations map[string]string) (ocispec.Descriptor, error) {
	c, layerType := Config{f.OS, f.Architecture}, ProgramType
	if f.OS == "" {
		c, layerType = Config{"wasip1", "wasm"}, ModuleType
	}
	layer, err := pushBlob(ctx, repo, layerType, f.Path)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	config, err := pushJSON(ctx, repo, ConfigType, c)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	d, err := pushJSON(ctx, repo, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: Type,
		Config: config, Layers: []ocispec.Descriptor{layer}, Annotations: annotations,
	})
	d.Platform = &ocispec.Platform{OS: c.OS, Architecture: c.Architecture}
	return d, err
}

func pushBlob(ctx context.Context, repo *remote.Repository, mediaType, path string) (ocispec.Descriptor, error) {
	f, err := os.Open(path)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer f.Close()
	sum, err := digest.FromReader(f)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	d := ocispec.Descriptor{MediaType: mediaType, Digest: sum, Size: info.Size()}
	if there, err := repo.Exists(ctx, d); err != nil || there {
		return d, err
	}
	return d, repo.Push(ctx, d, f)
}

func pushJSON(ctx context.Context, repo *remote.Repository, mediaType string, value any) (ocispec.Descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return d, repo.Push(ctx, d, reader(text))
}

// Description is what a registry says of an artifact, without fetching its program.
type Description struct {
	Reference string `json:"reference"`
	// Digest of what the reference leads to.
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platforms   []Platform        `json:"platforms"`
	// Signed says which key signed it; Signatures how many signatures there are.
	Signed     string `json:"signed,omitempty"`
	Signatures int    `json:"signatures"`
}

// Platform is one that an artifact is for.
type Platform struct {
	OS           string `json:"os,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Digest       string `json:"digest"`
	// Bytes of its layers as they are fetched, Types of their contents.
	Bytes int64    `json:"bytes"`
	Types []string `json:"types"`
}

// Describe asks a registry about an artifact.
func (s *Store) Describe(ctx context.Context, src Source) (*Description, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than %v", src.Timeout))
	defer cancel()
	d, err := s.describe(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Reference, plain(ctx, err))
	}
	return d, nil
}

func (s *Store) describe(ctx context.Context, src Source) (*Description, error) {
	from := &fetcher{store: s, src: src, left: src.Bytes, leftSmall: mostSmall}
	at := src.Reference.Digest()
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
	is, err := readManifest(text)
	if err != nil {
		return nil, err
	}
	out := &Description{Reference: string(src.Reference), Digest: at, Annotations: is.Annotations}
	parts := []ocispec.Descriptor{{Digest: digest.Digest(at)}}
	if is.index() {
		parts = is.Manifests
	}
	for _, d := range parts {
		if text, err = from.manifest(ctx, d.Digest); err != nil {
			return nil, err
		}
		part, err := readManifest(text)
		if err != nil {
			return nil, err
		}
		p := Platform{Digest: d.Digest.String()}
		if config, err := from.config(ctx, part); err != nil {
			return nil, err
		} else if p.OS, p.Architecture = config.OS, config.Architecture; d.Platform != nil {
			p.OS, p.Architecture = d.Platform.OS, d.Platform.Architecture
		}
		for _, l := range part.Layers {
			p.Bytes, p.Types = p.Bytes+l.Size, append(p.Types, l.MediaType)
		}
		out.Platforms = append(out.Platforms, p)
	}
	all, err := from.signatures(ctx, digest.Digest(at))
	if err != nil {
		return nil, fmt.Errorf("its signatures: %w", err)
	}
	out.Signatures = len(all)
	if src.Key != "" {
		keys, err := readKeys(src.Key)
		if err != nil {
			return nil, err
		}
		out.Signed = signedBy(keys, at, all)
	}
	return out, nil
}

// mostListed bounds what is listed of a registry.
const mostListed = 10_000

// errEnough ends a listing.
var errEnough = errors.New("enough")

// Search lists what a registry has: the names of its repositories, those with a word in them, or,
// of a source that names one, its tags.
func Search(ctx context.Context, src Source, registry, word string) (all []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than %v", src.Timeout))
	defer cancel()
	take := func(some []string) error {
		for _, name := range some {
			if len(all) == mostListed {
				return errEnough
			}
			if strings.Contains(name, word) {
				all = append(all, name)
			}
		}
		return nil
	}
	all = []string{} // not nil, which is no list in JSON
	if src.Reference != "" {
		var repo *remote.Repository
		if repo, err = src.repository(); err == nil {
			repo.TagListMaxPages = 100
			err = repo.Tags(ctx, "", take)
		}
	} else {
		var of *remote.Registry
		if of, err = src.catalog(registry); err == nil {
			err = of.Repositories(ctx, "", take)
		}
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, plain(ctx, err)
	}
	return all, nil
}
