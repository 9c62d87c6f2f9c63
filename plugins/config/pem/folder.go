package pem

import (
	"bytes"
	encoded "encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// certbot has what certbot calls the values: links in a folder live/NAME.
// Source: certbot, "Where are my certificates?".
var certbot = map[string]string{"fullchain.pem": secrets.Certificates, "privkey.pem": secrets.Key}

// value returns the value of a Secret that a file of this name has; empty: none.
func value(file string) string {
	if secrets.Wanted(secrets.Secret, file) {
		return file
	}
	return certbot[file]
}

// maxFile is how many bytes a file may have; less may be too much for all together.
const maxFile = 1 << 20

// folder is a folder with files of values, as it was found last.
type folder struct {
	path string
	// files are their stats by their paths. A file without one could not be looked at: err says
	// why.
	files map[string]fs.FileInfo
	err   error
}

// same reports whether no file has changed between two looks.
func (f *folder) same(other *folder) bool {
	if other == nil || f.err != nil || other.err != nil || len(f.files) != len(other.files) {
		return false
	}
	for path, info := range f.files {
		was := other.files[path]
		if was == nil || was.Size() != info.Size() || !was.ModTime().Equal(info.ModTime()) || !os.SameFile(was, info) {
			return false
		}
	}
	return true
}

// name returns the namespace and name of the Secret that a folder is, or why it is none.
func (c *Config) name(path string) (namespace, name string, err error) {
	below, err := filepath.Rel(c.Dir, path)
	if err != nil {
		return "", "", err
	}
	parts := strings.Split(below, string(filepath.Separator))
	switch {
	case strings.Contains(below, "@"):
		return "", "", errors.New("its name must have no @; these files are left out")
	case c.Namespace != "" && len(parts) == 1 && below != ".":
		return c.Namespace, below, nil
	case c.Namespace != "":
		return "", "", errors.New("files must lie in a folder NAME of the directory; these are left out")
	case len(parts) == 2:
		return parts[0], parts[1], nil
	}
	return "", "", errors.New("files must lie in a folder NAMESPACE/NAME of the directory; these are left out")
}

// document reads a folder as one of a Secret. Faults have nothing of what files hold.
func (c *Config) document(f *folder) kinds.Document {
	namespace, name, err := c.name(f.path)
	if err != nil {
		return kinds.Document{Faults: []kinds.Fault{{File: f.path, Code: kinds.CodeFile, Message: err.Error()}}}
	}
	d := kinds.Document{Table: secrets.SecretTable, Namespace: namespace, Name: name}
	data, err := f.read()
	if err == nil {
		err = secrets.Check(data)
	}
	if err != nil {
		d.Faults = []kinds.Fault{{File: f.path, Kind: secrets.Secret, Namespace: namespace, Name: name, Code: kinds.CodeSecret, Message: err.Error()}}
		return d
	}
	d.Row = &sdk.Row{Key: kinds.Key(namespace, name), Source: f.path, Payload: secrets.Content{Data: data}.Encode()}
	return d
}

// read returns the values of a folder's files.
func (f *folder) read() (map[string][]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	data := map[string][]byte{}
	for path := range f.files {
		file := filepath.Base(path)
		name := value(file)
		text, err := read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // what is left reports whether it is missed
		case err != nil:
			return nil, err
		case len(bytes.Trim(text, " \t\r\n\x00")) == 0:
			return nil, fmt.Errorf("%s is empty; remove it if there is to be none", file)
		case name != secrets.Staple && cut(text):
			return nil, fmt.Errorf("%s ends amid a block of PEM", file)
		case data[name] != nil:
			return nil, fmt.Errorf("%s is there twice, by certbot's name and by Kubernetes'; remove one", name)
		}
		data[name] = text
	}
	return data, nil
}

// cut reports whether a text in PEM has lost its end: what is left may be valid, and mean something
// else.
func cut(text []byte) bool {
	block, rest := encoded.Decode(text)
	for block != nil {
		text = rest
		block, rest = encoded.Decode(text)
	}
	return bytes.Contains(text, []byte("-----BEGIN "))
}

// read returns a file's content.
func read(path string) ([]byte, error) {
	// What has become a pipe meanwhile must not be waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", filepath.Base(path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", filepath.Base(path), maxFile)
	}
	return slices.Clip(text), err
}
