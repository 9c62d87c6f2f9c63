package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/replace"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// Store keeps what was fetched in a directory: files by their digest, signatures by that of what is
// signed, and what tags meant to plugins. Nothing in it is believed either: whatever is read is
// hashed again.
type Store struct {
	// Dir is made when it is needed.
	Dir string
	// Most bytes of files; more only as long as they are in use. 0: no bound.
	Most int64

	mu sync.Mutex
	// used are the names of files that this process has handed out.
	used map[string]bool
}

// Files of the store.
const (
	blobs      = "sha256"
	signatures = "signatures"
	tags       = "tags"
)

func (s *Store) path(kind, name string) string { return filepath.Join(s.Dir, kind, name) }

// read returns a small file by its digest; nil: the store hasn't got it, as it was written.
func (s *Store) read(d digest.Digest, most int64) []byte {
	f, err := os.Open(s.path(blobs, d.Encoded()))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || digest.FromBytes(text) != d {
		return nil
	}
	return text
}

// has reports whether the store has a file as it was written.
func (s *Store) has(d digest.Digest) bool {
	f, err := os.Open(s.path(blobs, d.Encoded()))
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == d.Encoded()
}

// write puts what a reader gives into the store, most bytes of it at most, and returns its digest
// and size. want, where it is given, is what the digest must be.
func (s *Store) write(from io.Reader, want digest.Digest, most int64) (digest.Digest, int64, error) {
	dir := filepath.Join(s.Dir, blobs)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, err
	}
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(from, most+1))
	got := digest.NewDigestFromEncoded(digest.SHA256, hex.EncodeToString(sum.Sum(nil)))
	switch {
	case err != nil:
	case n > most:
		err = fmt.Errorf("it has more than %d bytes (pull.bytes)", most)
	case want != "" && got != want:
		err = fmt.Errorf("the registry gave other bytes than those of %s: theirs is %s", want, got)
	}
	if err := errors.Join(err, f.Chmod(0o500), f.Close()); err != nil {
		return "", 0, err
	}
	s.prune(n)
	return got, n, os.Rename(f.Name(), s.path(blobs, got.Encoded()))
}

// use notes that what was found is in use.
func (s *Store) use(found *Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[string]bool{}
	}
	now := time.Now()
	for _, name := range []string{digest.Digest(found.Digest).Encoded(), digest.Digest(found.Manifest).Encoded(), found.Sum} {
		s.used[name] = true
		_ = os.Chtimes(s.path(blobs, name), now, now)
	}
}

// Hold notes that these are in use, and nothing else is any more.
func (s *Store) Hold(found ...*Found) {
	s.mu.Lock()
	s.used = nil
	s.mu.Unlock()
	for _, one := range found {
		s.use(one)
	}
}

// prune makes room for so many bytes: what was not used for the longest time goes first, and what
// is in use stays.
func (s *Store) prune(more int64) {
	if s.Most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.Dir, blobs)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var all []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && len(info.Name()) == hex.EncodedLen(sha256.Size) {
			all = append(all, info)
			more += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range all {
		if more <= s.Most {
			return
		}
		if !s.used[info.Name()] && os.Remove(filepath.Join(dir, info.Name())) == nil {
			more -= info.Size()
		}
	}
}

// nameOf is the name of a file about something that has any name.
func nameOf(all ...string) string {
	text, _ := json.Marshal(all) // strings
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Meant returns what a reference's tag meant to a plugin when it was last started; empty: that is
// not known.
func (s *Store) Meant(plugin, reference string) string {
	text, err := os.ReadFile(s.path(tags, nameOf(plugin, reference)))
	if err != nil || digest.Digest(text).Validate() != nil {
		return ""
	}
	return string(text)
}

// Means notes what a reference's tag means to a plugin that was started with it.
func (s *Store) Means(plugin, reference, digest string) error {
	return s.keep(tags, nameOf(plugin, reference), []byte(digest))
}

func (s *Store) keep(kind, name string, text []byte) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, kind), 0o700); err != nil {
		return err
	}
	return replace.File(s.path(kind, name), text, 0o600, nil)
}

// fetcher gets what one artifact is made of.
type fetcher struct {
	store *Store
	src   Source
	// left is how many bytes of layers may still be fetched, leftSmall how many of configurations
	// and signatures.
	left, leftSmall uint64
	// from is the registry's client; nil: nothing was needed of it yet.
	from *remote.Repository
}

func (f *fetcher) registry() (*remote.Repository, error) {
	if f.from == nil {
		repo, err := f.src.repository()
		if err != nil {
			return nil, err
		}
		f.from = repo
	}
	return f.from, nil
}

// resolve asks the registry what the reference's tag means.
func (f *fetcher) resolve(ctx context.Context) (string, error) {
	repo, err := f.registry()
	if err != nil {
		return "", err
	}
	tag := f.src.Reference.Tag()
	if tag == "" {
		tag = "latest"
	}
	d, body, err := repo.FetchReference(ctx, tag)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, mostManifest+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > mostManifest:
		return "", fmt.Errorf("its manifest has more than %d bytes", mostManifest)
	case digest.FromBytes(text) != d.Digest:
		return "", fmt.Errorf("the registry says that %s is %s, and gives %s", tag, d.Digest, digest.FromBytes(text))
	}
	if _, _, err := f.store.write(bytes.NewReader(text), d.Digest, mostManifest); err != nil {
		return "", err
	}
	return d.Digest.String(), nil
}

// manifest returns the manifest or index of a digest.
func (f *fetcher) manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	if text := f.store.read(d, mostManifest); text != nil {
		return text, nil
	}
	repo, err := f.registry()
	if err != nil {
		return nil, err
	}
	_, body, err := repo.FetchReference(ctx, d.String())
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if _, _, err := f.store.write(body, d, mostManifest); err != nil {
		return nil, err
	}
	if text := f.store.read(d, mostManifest); text != nil {
		return text, nil
	}
	return nil, fmt.Errorf("%s is gone from %s", d, f.store.Dir)
}

// blob sees that the store has a layer.
func (f *fetcher) blob(ctx context.Context, d ocispec.Descriptor) error {
	if f.store.has(d.Digest) {
		return nil
	}
	if uint64(d.Size) > f.left {
		return fmt.Errorf("it has more than %d bytes (pull.bytes, or --bytes)", f.src.Bytes)
	}
	f.left -= uint64(d.Size)
	return f.fetch(ctx, d)
}

// fetch puts a blob into the store.
func (f *fetcher) fetch(ctx context.Context, d ocispec.Descriptor) error {
	repo, err := f.registry()
	if err != nil {
		return err
	}
	body, err := repo.Blobs().Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	_, _, err = f.store.write(body, d.Digest, d.Size)
	return err
}

// small returns a blob that is short: a configuration, or a signature.
func (f *fetcher) small(ctx context.Context, d ocispec.Descriptor, most int64) ([]byte, error) {
	if d.Size > most {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", d.Digest, d.Size, most)
	}
	if !f.store.has(d.Digest) {
		if uint64(d.Size) > f.leftSmall {
			return nil, fmt.Errorf("its configurations and signatures have more than %d bytes", mostSmall)
		}
		f.leftSmall -= uint64(d.Size)
		if err := f.fetch(ctx, d); err != nil {
			return nil, err
		}
	}
	if text := f.store.read(d.Digest, most); text != nil {
		return text, nil
	}
	return nil, fmt.Errorf("%s is gone from %s", d.Digest, f.store.Dir)
}
