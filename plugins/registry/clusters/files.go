package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// settle is how long the folder is quiet before it is read again, look how often it is read in
	// any case.
	settle, look = 250 * time.Millisecond, 10 * time.Second
	// mostFiles and mostBytes bound what is read of a folder, and of a file.
	mostFiles, mostBytes = 1000, 1 << 20
)

// directory checks that there is one.
func (c *Config) directory() error {
	is, err := os.Stat(c.Directory)
	switch {
	case err != nil:
		return strict.Errorf("directory", "%v", err)
	case !is.IsDir():
		return strict.Errorf("directory", "%s is no directory", c.Directory)
	}
	return nil
}

// files publishes the clusters whose kubeconfigs are in the directory, and follows it until ctx
// ends.
func (r *registry) files(ctx context.Context, out sdk.Publisher) error {
	w, err := watch.New(settle, func(string) bool { return true })
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	var said kube.LogLimiter
	p := r.publication(out)
	for synced := false; ; {
		w.Sweep()
		err := w.Add(r.config.Directory) // again, if another one has its name by now
		var all []found
		if err == nil {
			all, err = r.config.inDirectory()
		}
		if err == nil {
			if err := p.publish(all); err != nil {
				return err
			}
		} else if said.Allow("directory", err, time.Now()) {
			out.Log(sdk.Warn, "the directory of other clusters' kubeconfigs can't be read; what is known stays, and it is tried again", "error", err.Error())
		}
		if !synced && err == nil {
			synced = true
			if err := out.Synced(); err != nil {
				return err
			}
		}
		if _, err := w.Next(ctx, time.Now().Add(look)); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// inDirectory reads the files that end like YAML, in order of their names. The cluster's id is the
// name that the kubeconfig's current context has for it.
func (c *Config) inDirectory() ([]found, error) {
	entries, err := os.ReadDir(c.Directory)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return filepath.Ext(e.Name()) != ".yaml" && filepath.Ext(e.Name()) != ".yml"
	})
	if len(entries) > mostFiles {
		return nil, fmt.Errorf("%s has %d files; %d may be", c.Directory, len(entries), mostFiles)
	}
	var all []found
	for _, e := range entries {
		path := filepath.Join(c.Directory, e.Name())
		f := found{from: kube.FileMark + e.Name(), source: path, at: kinds.Fault{File: path, Name: e.Name()}}
		text, err := read(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has gone meanwhile
		}
		if err == nil {
			f.id, err = kube.ClusterOf(text)
		}
		if err == nil {
			_, err = c.Other(text, "")
		}
		hash := sha256.Sum256(text)
		f.hash, f.fault = hex.EncodeToString(hash[:]), err
		all = append(all, f)
	}
	return all, nil
}

// read returns what a file has, if that isn't too much.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes", mostBytes)
	}
	return text, err
}
