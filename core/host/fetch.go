package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/internal/artifact"
)

// storeBytes bounds the store of artifacts.
const storeBytes = 4 << 30

// ErrArtifact is that an artifact can't be had, for now.
var ErrArtifact = errors.New("its artifact can't be had")

// Source says where the artifact of a set's entry is, and on what terms it is taken.
func Source(set *manifest.Set, e *manifest.Entry) artifact.Source {
	under := func(path string) string {
		if path == "" {
			return ""
		}
		return manifest.Under(set.Dir(), path)
	}
	return artifact.Source{
		Reference: e.Plugin, Key: under(e.Pull.Key), Credentials: under(e.Pull.Credentials), CA: under(e.Pull.CA),
		PlainHTTP: e.Pull.PlainHTTP, Timeout: e.Pull.Timeout, Bytes: uint64(e.Pull.Bytes),
	}
}

// checkSource reports, as an error, what is wrong with an entry's artifact as far as it shows
// without asking its registry.
func checkSource(set *manifest.Set, e *manifest.Entry) error {
	if err := e.Trusted(); err != nil {
		return err
	}
	return Source(set, e).Check()
}

// Fetch returns an entry with what its artifact is, which is fetched where the store hasn't got it.
// A tag means what it did when the plugin was started last, or, anew, what its registry says now.
// Of an entry that was fetched already it sees that the store has it still. Others are returned as
// they are.
func (h *Host) Fetch(ctx context.Context, e *manifest.Entry, anew bool) (*manifest.Entry, error) {
	declared := e.Declaration()
	if declared.Plugin == "" {
		return e, nil
	}
	if err := declared.Trusted(); err != nil {
		return nil, err
	}
	digest := ""
	switch {
	case declared.Plugin.Digest() != "" || anew:
	case e.Artifact != nil:
		digest = e.Artifact.Digest
	default:
		digest = h.artifacts.Meant(e.Name, string(declared.Plugin))
	}
	began := time.Now()
	found, err := h.artifacts.Get(ctx, Source(h.cfg.Set, declared), digest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArtifact, err)
	}
	h.cfg.Log.Debug("artifact is there", "plugin", e.Name, "artifact", declared.Plugin, "digest", found.Digest, "manifest", found.Manifest,
		"signed", found.Signed, "bytes", found.Bytes, "took", time.Since(began))
	return declared.Fetched(manifest.Artifact{Digest: found.Digest, Signed: found.Signed}, found.Module, found.Path, manifest.Digest(found.Sum), found.Args)
}

// Meaning asks the registry of an entry's artifact what its reference leads to.
func (h *Host) Meaning(ctx context.Context, e *manifest.Entry) (string, error) {
	return h.artifacts.Resolve(ctx, Source(h.cfg.Set, e))
}

// Fetched returns an entry as it runs, with what its artifact is, as far as that is known.
func (h *Host) Fetched(e *manifest.Entry) *manifest.Entry {
	if e == nil || e.Plugin == "" {
		return e
	}
	for _, s := range h.all() {
		if is := s.runs(); is.Artifact != nil && is.Name == e.Name && manifest.Same(is, e) {
			return is
		}
	}
	return e
}

// fetch sees that the artifact of a slot's entry is there.
func (h *Host) fetch(ctx context.Context, s *slot) error {
	e := s.runs()
	if e.Plugin == "" {
		return nil
	}
	is, err := h.Fetch(ctx, e, false)
	if err != nil {
		return err
	}
	if e.Artifact == nil {
		s.log.Info("plugin's artifact is there", "artifact", is.Plugin.At(is.Artifact.Digest), "runs", is.Carrier(), "signed", is.Artifact.Signed)
	}
	s.mu.Lock()
	s.is, s.status.Entry = is, is
	s.mu.Unlock()
	if !s.isStandby() {
		h.remember(s)
	}
	return nil
}

// remember notes what the tag of a slot's artifact means, for the next start of the core.
func (h *Host) remember(s *slot) {
	e := s.runs()
	if e.Artifact == nil || e.Plugin.Digest() != "" || h.artifacts.Meant(e.Name, string(e.Plugin)) == e.Artifact.Digest {
		return
	}
	if err := h.artifacts.Means(e.Name, string(e.Plugin), e.Artifact.Digest); err != nil {
		s.log.Warn("what the artifact's tag means could not be kept: after a restart of the core it may mean something else", "error", err)
	}
}

// runs is the slot's entry, with what its artifact is once that is known.
func (s *slot) runs() *manifest.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is
}

func (c Config) store() (*artifact.Store, error) {
	dir := c.ArtifactDir
	if dir == "" {
		dir = filepath.Join(c.RuntimeDir, "artifacts")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Join(errors.New("host: the directory of artifacts"), err)
	}
	return &artifact.Store{Dir: dir, Most: storeBytes}, nil
}
