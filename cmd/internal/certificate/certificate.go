// Package certificate gets a workload's certificate from a control plane, and keeps it in files for
// proxies that have no agent.
package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"
)

// The files of a folder, by the names that Istio's agent gives them.
const (
	ChainFile, KeyFile, RootFile = "cert-chain.pem", "key.pem", "root-cert.pem"
	// data is a link to where they are: it is moved, so that all change at once, as in volumes of
	// Kubernetes.
	data = "..data"
)

// Config says who asks whom, and where the answer goes.
type Config struct {
	// Address is the control plane's secure port, HOST:PORT, and ServerName the DNS name that its
	// certificate must have.
	Address, ServerName string
	// Roots is a file with the authorities of that certificate, in PEM. Those of Dir count as well.
	Roots string
	// Token is a file with the token that is shown; it is read each time. Empty: the certificate in
	// Dir is shown alone.
	Token string
	// Dir is the folder for the files.
	Dir string
	// TTL is how long the certificate is to count; 0: as the CA says.
	TTL time.Duration
}

// Obtain gets a certificate for a new key, writes the files, and returns it.
func (c *Config) Obtain(ctx context.Context) (*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	answer, err := c.ask(ctx, &security.IstioCertificateRequest{
		Csr: string(encode("CERTIFICATE REQUEST", csr)), ValidityDuration: int64(c.TTL / time.Second),
	})
	if err != nil {
		return nil, err
	}
	if len(answer.CertChain) < 2 {
		return nil, fmt.Errorf("the answer has %d certificates; at least its own and a root are wanted", len(answer.CertChain))
	}
	last := len(answer.CertChain) - 1
	leaf, err := first(answer.CertChain[0])
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return leaf, write(c.Dir, map[string][]byte{
		ChainFile: []byte(strings.Join(answer.CertChain[:last], "")), RootFile: []byte(answer.CertChain[last]), KeyFile: encode("PRIVATE KEY", secret),
	})
}

// ask calls the control plane.
func (c *Config) ask(ctx context.Context, m *security.IstioCertificateRequest) (*security.IstioCertificateResponse, error) {
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(c.Address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if c.Token != "" {
		token, err := os.ReadFile(c.Token)
		if err != nil {
			return nil, err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, m)
}

// tls is how it is found out who answers, and shown who asks.
func (c *Config) tls() (*tls.Config, error) {
	out := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	found := false
	for _, file := range []string{c.Roots, filepath.Join(c.Dir, RootFile)} {
		text, err := os.ReadFile(file)
		switch {
		case file == "" || errors.Is(err, fs.ErrNotExist) && file != c.Roots:
			continue
		case err != nil:
			return nil, err
		case !out.RootCAs.AppendCertsFromPEM(text):
			return nil, fmt.Errorf("%s holds no certificate in PEM", file)
		}
		found = true
	}
	if !found {
		return nil, errors.New("nothing says whose certificate the control plane must have: name the file with its roots")
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(c.Dir, ChainFile), filepath.Join(c.Dir, KeyFile))
	if err == nil && time.Now().Before(own.Leaf.NotAfter) {
		out.Certificates = []tls.Certificate{own}
	}
	return out, nil
}

const (
	// retryFirst and retryMost bound the pause between tries.
	retryFirst, retryMost = time.Second, time.Minute
	// patience is how long one try may take.
	patience = 30 * time.Second
)

// Follow gets certificates until ctx ends: the next one when half of the life of one is over. say
// is told what happens, and must not be given up on: what fails is tried again, but for what can't
// get better, which is returned if there was no certificate yet.
func (c *Config) Follow(ctx context.Context, say func(*x509.Certificate, error)) error {
	had, pause := false, retryFirst
	for {
		try, cancel := context.WithTimeout(ctx, patience)
		leaf, err := c.Obtain(try)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		wait := pause
		if err == nil {
			now := time.Now()
			had, pause, wait = true, retryFirst, max(leaf.NotAfter.Sub(now)/2, retryFirst)
		} else {
			if !had && !mayPass(err) {
				return err
			}
			pause = min(2*pause, retryMost)
		}
		say(leaf, err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// mayPass reports whether an error may be gone the next time.
func mayPass(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal:
		return true
	}
	return false
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func first(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the answer has no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// write replaces the files of a folder, all at once.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(next, name), text, 0o600); err != nil {
			return err
		}
		link, target := filepath.Join(dir, name), filepath.Join(data, name)
		if is, err := os.Readlink(link); err == nil && is == target {
			continue
		}
		if err := place(target, link); err != nil {
			return err
		}
	}
	before, _ := os.Readlink(filepath.Join(dir, data))
	if err := place(filepath.Base(next), filepath.Join(dir, data)); err != nil {
		return err
	}
	if before != "" && !bytes.ContainsRune([]byte(before), filepath.Separator) {
		return os.RemoveAll(filepath.Join(dir, before))
	}
	return nil
}

// place puts a link into the place of whatever is there.
func place(target, link string) error {
	if err := os.Symlink(target, link+".new"); err != nil {
		return err
	}
	return os.Rename(link+".new", link)
}
