package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// startHard starts a server for a scenario, and says how sidecars reach it.
func startHard(ctx context.Context, c config, l load, sc scenario, kind string) (*server, fleet.Config, error) {
	fc := fleet.Config{Sidecars: l.sidecars, Namespaces: 10, Own: sc.own, Slow: sc.slow, Patience: patience}
	s, err := newServer(c, kind, l)
	if err != nil {
		return nil, fc, err
	}
	fc.Address = s.xds
	var files []string
	if sc.tls {
		if files, err = certificates(c.path("tls")); err != nil {
			return nil, fc, err
		}
		fc.Cert, fc.Key, fc.CA, fc.ServerName = files[0], files[1], files[2], "localhost"
	}
	if kind == floor {
		s.cmd = exec.Command(s.self, append([]string{"floor", s.xds, s.ctl, c.path("dump", l.mesh)}, files...)...)
	} else {
		if sc.own.Tags {
			s.cmd.Args = append(s.cmd.Args, "--meshConfig", c.path("tracing.yaml"))
			if err := os.WriteFile(c.path("tracing.yaml"), []byte("enableTracing: true\n"), 0o644); err != nil {
				return nil, fc, err
			}
		}
		if sc.tls {
			certificates := map[string]any{"name": "certificates", "kind": "authenticator", "builtin": "authenticator/certificate"}
			if err := writeSet(c.set, c.path("secure.yaml"), c.profile, certificates); err != nil {
				return nil, fc, err
			}
			s.cmd.Args = append(s.cmd.Args, "--plugins", c.path("secure.yaml"), "--grpcAddr=none", "--secureGRPCAddr", s.xds,
				"--tlsCertFile", files[0], "--tlsKeyFile", files[1], "--caCertFile", files[2])
		}
	}
	return s, fc, s.start(ctx, c.path("log", "hard-"+kind+".log"))
}

// serveFloor is the floor as a process of its own: XDS-ADDRESS CONTROL-ADDRESS DUMP [CERTIFICATE
// KEY AUTHORITIES].
func serveFloor(ctx context.Context, args []string) error {
	if len(args) != 3 && len(args) != 6 {
		return flag.ErrHelp
	}
	creds := insecure.NewCredentials()
	if len(args) == 6 {
		pair, err := tls.LoadX509KeyPair(args[3], args[4])
		if err != nil {
			return err
		}
		authorities, err := os.ReadFile(args[5])
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authorities)
		creds = credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven,
			MinVersion: tls.VersionTLS12,
		})
	}
	f, err := fleet.NewFloor(args[2])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { os.Exit(0) })
	go func() { _ = http.ListenAndServe(args[1], f) }()
	return f.Serve(l, creds)
}

// certificates writes an authority and a certificate for both ends: its files are the certificate,
// the key and the authority.
func certificates(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files := []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(24 * time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "both"}, NotAfter: until, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for i := range 10 { // one for each namespace that a sidecar may be of
		leaf.URIs = append(leaf.URIs, &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/ns-0" + string(rune('0'+i)) + "/sa/default"})
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	for file, make := range map[string]func() (string, []byte, error){
		files[0]: func() (string, []byte, error) {
			der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
			return "CERTIFICATE", der, err
		},
		files[1]: func() (string, []byte, error) { return "PRIVATE KEY", private, nil },
		files[2]: func() (string, []byte, error) {
			der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
			return "CERTIFICATE", der, err
		},
	} {
		kind, der, err := make()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			return nil, err
		}
	}
	return files, nil
}
