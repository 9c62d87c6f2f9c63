package ca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
)

// errNone is that nothing is plugged in.
var errNone = errors.New("no CA is plugged in")

// plugged is the directory of a CA that others made.
type plugged string

// read returns the CA. The error is errNone where the directory has no key.
// Source: Istio, "Plug in CA Certificates"; Kubernetes, Secrets of the type kubernetes.io/tls, as
// cert-manager writes them.
func (p plugged) read(now time.Time) (*authority.Authority, error) {
	if p == "" {
		return nil, errNone
	}
	for _, names := range []struct{ certificate, key, chain, roots string }{
		{"ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem"},
		{"tls.crt", "tls.key", "", "ca.crt"},
	} {
		key, err := p.part(names.key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var f authority.Files
		f.Key = key
		certificate, err2 := p.part(names.certificate)
		roots, err3 := p.part(names.roots)
		f.Certificate, f.Roots = certificate, roots
		if names.chain != "" {
			chain, err4 := p.part(names.chain)
			f.Chain, err = chain, errors.Join(err, err4)
		} else {
			f.Chain = certificate
		}
		if err = errors.Join(err, err2, err3); err != nil {
			return nil, fmt.Errorf("the CA that is plugged in is not complete: %w", err)
		}
		a, err := authority.Parse(f, now)
		if err != nil {
			return nil, fmt.Errorf("the CA that is plugged in, %s in %s: %w", names.certificate, string(p), err)
		}
		return a, nil
	}
	return nil, errNone
}

func (p plugged) part(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(p), name))
}
