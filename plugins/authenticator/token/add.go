package token

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/internal/replace"
)

// tokenBytes is how much of a new token is random.
const tokenBytes = 32

// Create makes a token for an identity, spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT, and
// adds its SHA-256 to a file, which it makes if there is none. expires is when it counts no more;
// zero: never. An error leaves the file as it was: it has a mistake, or somebody else changes it.
func Create(path, identity string, expires time.Time) (token string, err error) {
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	token = base64.RawURLEncoding.EncodeToString(random)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer unlock()
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = nil, nil
	}
	if err != nil {
		return "", err
	}
	after, err := with(before, token, identity, expires)
	if err != nil {
		return "", fmt.Errorf("%s:%w", path, err)
	}
	return token, exchange(path, before, after)
}

// lock keeps others who do the same from a folder, until the func that it returns is called.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("%s can't be locked: %w", dir, err), d.Close())
	}
	return func() { _ = d.Close() }, nil
}

// with returns the text of a file with one entry more; comments stay.
func with(text []byte, token, identity string, expires time.Time) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("tokens: []\n")
	}
	if _, err := decode(text); err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("1:1: not YAML")
	}
	digest := sha256.Sum256([]byte(token))
	entry := map[string]any{"sha256": hex.EncodeToString(digest[:]), "identities": []string{identity}}
	if !expires.IsZero() {
		entry["expires"] = expires.UTC().Format(time.RFC3339)
	}
	var made yaml.Node
	if err := made.Encode(entry); err != nil {
		return nil, err
	}
	key, list := doc.Content[0].Content[0], doc.Content[0].Content[1] // the only ones that there may be
	list.Style = 0
	if list.LineComment != "" { // of a list in one line, which it is no more
		key.HeadComment = strings.TrimPrefix(key.HeadComment+"\n"+list.LineComment, "\n")
		list.LineComment = ""
	}
	list.Content = append(list.Content, &made)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return nil, err
	}
	all, err := decode(b.Bytes())
	if err != nil {
		return nil, err
	}
	if _, err := all.whose(token, time.Time{}); err != nil {
		return nil, errors.New("1:1: the entry can't be added; write it by hand")
	}
	return b.Bytes(), nil
}

// exchange puts a text into the place of a file that said before, at once, and for its owner alone.
func exchange(path string, before, after []byte) error {
	return replace.File(path, after, 0o600, func(next *os.File) error {
		if err := owner(next, path); err != nil {
			return err
		}
		now, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(now, before) {
			return fmt.Errorf("%s was changed by somebody else meanwhile; nothing was added: try again", path)
		}
		return nil
	})
}

// owner gives a file the owner of the one whose place it takes, if there is one.
func owner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(is.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(is.Uid), int(is.Gid))
}
