package ca

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/internal/replace"
	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
)

// errTaken is that somebody else has made a CA, or another one, meanwhile.
var errTaken = errors.New("another replica was faster")

// keeper keeps a CA that signs itself. It is used by one goroutine.
type keeper interface {
	// load returns what is kept; nil where nothing is.
	load(ctx context.Context) (*authority.Files, error)
	// save keeps a CA in place of what load returned. The error wraps errTaken where that isn't
	// what is kept any more.
	save(ctx context.Context, f authority.Files) error
	// String is where, for people.
	String() string
}

// memory keeps a CA as long as the process lives.
type memory struct{ kept *authority.Files }

func (m *memory) load(context.Context) (*authority.Files, error) { return m.kept, nil }

func (m *memory) save(_ context.Context, f authority.Files) error {
	m.kept = &f
	return nil
}

func (m *memory) String() string { return "memory" }

// file keeps a CA in a file: certificate, key and roots, one after the other.
type file string

func (f file) load(context.Context) (*authority.Files, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(string(f)); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds the CA's key, and others may read it: chmod 600 it", string(f))
	}
	var out authority.Files
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		encoded := pem.EncodeToMemory(block)
		switch {
		case block.Type != "CERTIFICATE":
			out.Key = encoded
		case out.Certificate == nil:
			out.Certificate = encoded
		}
		if block.Type == "CERTIFICATE" {
			out.Roots = append(out.Roots, encoded...)
		}
	}
	if out.Certificate == nil || out.Key == nil {
		return nil, fmt.Errorf("%s has no certificate, or no key: it holds no CA", string(f))
	}
	return &out, nil
}

// save writes the whole file, or nothing.
func (f file) save(_ context.Context, files authority.Files) error {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	others := bytes.TrimPrefix(files.Roots, files.Certificate)
	return replace.File(string(f), bytes.Join([][]byte{files.Certificate, files.Key, others}, nil), 0o600, nil)
}

func (f file) String() string { return string(f) }

// secret keeps a CA in a Secret of the cluster, as istiod does.
type secret struct {
	client          rest.Interface
	namespace, name string
	// version is the Secret's that load found; empty: there was none.
	version string
}

// secretType and the keys are istiod's.
const (
	secretType                                = "istio.io/ca-root"
	certificateKey, keyKey, chainKey, rootKey = "ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem"
)

func (s *secret) load(ctx context.Context) (*authority.Files, error) {
	found := &corev1.Secret{}
	err := s.client.Get().Namespace(s.namespace).Resource("secrets").Name(s.name).Do(ctx).Into(found)
	s.version = found.ResourceVersion
	if apierrors.IsNotFound(err) {
		s.version = ""
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &authority.Files{
		Certificate: found.Data[certificateKey], Key: found.Data[keyKey], Chain: found.Data[chainKey], Roots: found.Data[rootKey],
	}
	if len(f.Roots) == 0 {
		f.Roots = f.Certificate
	}
	return f, nil
}

func (s *secret) save(ctx context.Context, f authority.Files) error {
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, ResourceVersion: s.version}, Type: secretType,
		Data: map[string][]byte{certificateKey: f.Certificate, keyKey: f.Key, chainKey: f.Chain, rootKey: f.Roots},
	}
	var err error
	if s.version == "" {
		err = s.client.Post().Namespace(s.namespace).Resource("secrets").Body(made).Do(ctx).Error()
	} else {
		err = s.client.Put().Namespace(s.namespace).Resource("secrets").Name(s.name).Body(made).Do(ctx).Error()
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	return err
}

func (s *secret) String() string { return "secret " + s.namespace + "/" + s.name }
