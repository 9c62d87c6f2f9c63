package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
)

// repository is where commits come from.
type repository struct{ config Config }

// commit is what a branch has.
type commit struct {
	hash string
	// files are contents by path.
	files map[string][]byte
	// refused are files that can't be read, and why.
	refused map[string]error
}

// unfit is why a commit that is there can't be taken.
type unfit struct{ error }

// head asks which commit the branch has. known is one that was read: then nothing else is asked,
// and the answer is nil. The error says why there is no answer; it has no credentials in it.
func (r repository) head(ctx context.Context, known string) (*commit, error) {
	if r.config.local != "" {
		return r.ofPath(known)
	}
	access, err := r.access()
	if err != nil {
		return nil, err
	}
	c, err := r.ofURL(allow(ctx, r.config), access, known)
	if access.password != "" && !errors.As(err, new(*unfit)) {
		err = said.HideIn(err, r.config.Username+":"+access.password, access.password)
	}
	return c, err
}

// ofPath reads a repository of this machine where it is.
func (r repository) ofPath(known string) (*commit, error) {
	repo, err := git.PlainOpenWithOptions(r.config.local, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, err
	}
	name := plumbing.HEAD
	if r.config.Branch != "" {
		name = plumbing.NewBranchReferenceName(r.config.Branch)
	}
	ref, err := repo.Reference(name, true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, fmt.Errorf("there is no branch %q", branchName(name))
	}
	if err != nil || ref.Hash().String() == known {
		return nil, err
	}
	return r.read(repo, ref.Hash())
}

func branchName(name plumbing.ReferenceName) string {
	if name == plumbing.HEAD {
		return "that HEAD names"
	}
	return name.Short()
}

// access is what opens a server's door.
type access struct {
	auth          transport.AuthMethod
	password      string
	ca, cert, key []byte
}

// access reads the files that the config names.
func (r repository) access() (a access, err error) {
	read := func(field, file string) []byte {
		if file == "" || err != nil {
			return nil
		}
		text, failed := os.ReadFile(file)
		if failed != nil {
			err = fmt.Errorf("%s: %w", field, failed)
		}
		return text
	}
	if t := r.config.TLS; t != nil {
		a.ca, a.cert, a.key = read("tls.ca", t.CA), read("tls.cert", t.Cert), read("tls.key", t.Key)
	}
	if r.config.PasswordFile != "" {
		a.password = strings.TrimSpace(string(read("passwordFile", r.config.PasswordFile)))
		a.auth = &http.BasicAuth{Username: r.config.Username, Password: a.password}
	}
	return a, err
}

// ofURL asks a server for the branch's commit, and fetches that alone, without those before it.
func (r repository) ofURL(ctx context.Context, a access, known string) (*commit, error) {
	remote := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: git.DefaultRemoteName, URLs: []string{r.config.Repository}})
	refs, err := remote.ListContext(ctx, &git.ListOptions{Auth: a.auth, CABundle: a.ca, ClientCert: a.cert, ClientKey: a.key})
	if err != nil {
		return nil, err
	}
	name, hash, err := r.branch(refs)
	if err != nil || hash.String() == known {
		return nil, err
	}
	storage := &bounded{Storage: memory.NewStorage(), most: r.config.Limits.Bytes}
	repo, err := git.CloneContext(ctx, storage, nil, &git.CloneOptions{
		URL: r.config.Repository, Auth: a.auth, ReferenceName: name, SingleBranch: true, NoCheckout: true, Depth: 1, Tags: git.NoTags,
		CABundle: a.ca, ClientCert: a.cert, ClientKey: a.key,
	})
	if storage.unfit != nil {
		return nil, &unfit{storage.unfit}
	}
	if err != nil {
		return nil, err
	}
	ref, err := repo.Reference(name, true) // it may have moved on since
	if err != nil {
		return nil, err
	}
	return r.read(repo, ref.Hash())
}

// branch finds the branch among a server's references.
func (r repository) branch(refs []*plumbing.Reference) (plumbing.ReferenceName, plumbing.Hash, error) {
	name := plumbing.NewBranchReferenceName(r.config.Branch)
	if r.config.Branch == "" {
		name = plumbing.HEAD
	}
	for range 2 { // HEAD names a branch
		for _, ref := range refs {
			switch {
			case ref.Name() != name:
			case ref.Type() == plumbing.SymbolicReference:
				name = ref.Target()
			default:
				return name, ref.Hash(), nil
			}
		}
	}
	return "", plumbing.ZeroHash, fmt.Errorf("there is no branch %q", branchName(name))
}

// read reads a commit's files of resources.
func (r repository) read(repo *git.Repository, hash plumbing.Hash) (*commit, error) {
	of, err := repo.CommitObject(hash)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", hash, err)
	}
	tree, err := of.Tree()
	if err == nil && r.config.Folder != "" {
		tree, err = tree.Tree(r.config.Folder)
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, &unfit{fmt.Errorf("commit %s has no folder %s", short(hash.String()), r.config.Folder)}
	}
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", hash, err)
	}
	c := &commit{hash: hash.String(), files: map[string][]byte{}, refused: map[string]error{}}
	if err := (&walk{repository: r, repo: repo, commit: c}).folder(tree, "", 0); err != nil {
		return nil, err // what was seen until then is not the commit
	}
	return c, nil
}

// walk is one through a commit's folders, whose trees may be the same ones again and again.
type walk struct {
	repository
	repo   *git.Repository
	commit *commit
	// entries are so many as were seen.
	entries int
}

// mostEntries is how many entries a commit's folders may have, mostDepth how deep they may lie in
// each other.
const mostEntries, mostDepth = 1_000_000, 200

// folder reads a folder and those below it.
func (w *walk) folder(tree *object.Tree, folder string, depth int) error {
	hash := short(w.commit.hash)
	if depth > mostDepth {
		return &unfit{fmt.Errorf("commit %s has folders in each other, more than %d deep", hash, mostDepth)}
	}
	for _, e := range tree.Entries {
		if w.entries++; w.entries > mostEntries {
			return &unfit{fmt.Errorf("commit %s has more than %d files and folders", hash, mostEntries)}
		}
		name := folder + e.Name
		switch {
		case catalog.Ignored(e.Name):
		case e.Mode == filemode.Dir:
			below, err := object.GetTree(w.repo.Storer, e.Hash)
			if err == nil {
				err = w.folder(below, name+"/", depth+1)
			}
			if err != nil {
				return err
			}
		case (e.Mode == filemode.Regular || e.Mode == filemode.Executable || e.Mode == filemode.Deprecated) && catalog.Wanted(e.Name):
			if err := w.room(); err != nil {
				return err
			}
			if !named(name) {
				w.commit.refused[strconv.Quote(name)] = errors.New("its name is no UTF-8, or has control characters or .. in it")
				continue
			}
			if err := w.file(e.Hash, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// named reports whether a file has a name that can be told.
func named(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && path.Clean("/"+name) == "/"+name
}

// room returns why there may be no further file.
func (w *walk) room() error {
	if len(w.commit.files)+len(w.commit.refused) >= w.config.Limits.Files {
		return &unfit{fmt.Errorf("commit %s has more files than limits.files, %d", short(w.commit.hash), w.config.Limits.Files)}
	}
	return nil
}

// file reads a file. One that is too large is refused alone; too much in all refuses the commit.
func (w *walk) file(hash plumbing.Hash, name string) error {
	c, limits := w.commit, w.config.Limits
	blob, err := object.GetBlob(w.repo.Storer, hash)
	if err != nil {
		return fmt.Errorf("commit %s: %s: %w", short(c.hash), name, err)
	}
	if blob.Size > limits.FileBytes {
		c.refused[name] = fmt.Errorf("it has %d bytes, which is more than limits.fileBytes, %d", blob.Size, limits.FileBytes)
		return nil
	}
	if c.size() > limits.Bytes-blob.Size {
		return &unfit{fmt.Errorf("the files of commit %s are larger than limits.bytes, %d", short(c.hash), limits.Bytes)}
	}
	text, err := blob.Reader()
	if err != nil {
		return fmt.Errorf("commit %s: %s: %w", short(c.hash), name, err)
	}
	defer func() { _ = text.Close() }()
	if c.files[name], err = io.ReadAll(text); err != nil {
		return fmt.Errorf("commit %s: %s: %w", short(c.hash), name, err)
	}
	return nil
}

// size is that of all files.
func (c *commit) size() (n int64) {
	for _, text := range c.files {
		n += int64(len(text))
	}
	return n
}

// short is a commit's name as people write it.
func short(hash string) string { return hash[:min(12, len(hash))] }
