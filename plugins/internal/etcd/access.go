package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Access is how an etcd is reached. It is embedded in plugins' configs.
type Access struct {
	// Endpoints are URLs of members.
	Endpoints []string `json:"endpoints"`
	Username  string   `json:"username"`
	Password  string   `json:"password"`
	// TLS is needed for endpoints that begin with https; nil: the system's roots.
	TLS *TLS `json:"tls"`
}

// TLS is how connections are secured. The files are in PEM; a client's certificate is read at each connection, so that
// it may be renewed.
type TLS struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"serverName"`
}

// AccessSchema is the JSON Schema of the fields of Access, for `properties`.
const AccessSchema = `
    "endpoints": {"type": "array", "minItems": 1, "items": {"type": "string"}, "description": "URLs of etcd's members, http://HOST:PORT or https://HOST:PORT."},
    "username": {"type": "string"},
    "password": {"type": "string"},
    "tls": {"type": "object", "additionalProperties": false, "description": "For endpoints that begin with https.", "properties": {
      "ca": {"type": "string", "description": "File of the certificates that etcd's is signed by; the system's if absent."},
      "cert": {"type": "string", "description": "File of the client's certificate."},
      "key": {"type": "string", "description": "File of its key."},
      "serverName": {"type": "string", "description": "The name in etcd's certificate, where it is not that of the endpoint."}
    }}`

const (
	// patience is how long a request may take.
	patience = 10 * time.Second
	// signs of life are asked for each keepAlive, and awaited for as long as silence.
	keepAlive, silence = 10 * time.Second, 5 * time.Second
)

// Check reports what is wrong with an access, as *sdk.FieldError.
func (a Access) Check() error {
	if len(a.Endpoints) == 0 {
		return strict.Errorf("endpoints", "at least one is needed, such as http://127.0.0.1:2379")
	}
	scheme := ""
	for i, e := range a.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" {
			return strict.Errorf(strict.At("endpoints", i), "is no URL such as http://127.0.0.1:2379 or https://etcd.example:2379")
		}
		if scheme != "" && u.Scheme != scheme {
			return strict.Errorf(strict.At("endpoints", i), "is of %s, and another one of %s", u.Scheme, scheme)
		}
		scheme = u.Scheme
	}
	switch {
	case a.TLS != nil && scheme == "http":
		return strict.Errorf("tls", "is for endpoints that begin with https")
	case (a.Username == "") != (a.Password == ""):
		return strict.Errorf("username", "username and password belong together")
	case a.TLS != nil && (a.TLS.Cert == "") != (a.TLS.Key == ""):
		return strict.Errorf("tls.cert", "cert and key belong together")
	}
	return nil
}

// dial connects. With a user's name it asks for a token at once, so a server that is away, and wrong credentials, are
// errors.
func (a Access) dial(ctx context.Context) (*clientv3.Client, error) {
	secure, err := a.secure()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: a.Endpoints, Username: a.Username, Password: a.Password, TLS: secure, Logger: zap.NewNop(),
		DialTimeout: patience, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: silence, PermitWithoutStream: true,
	})
}

// secure returns the settings of TLS; nil where there is none.
func (a Access) secure() (*tls.Config, error) {
	if u, err := url.Parse(a.Endpoints[0]); err != nil || u.Scheme != "https" {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.TLS == nil {
		return c, nil
	}
	c.ServerName = a.TLS.ServerName
	if a.TLS.CA != "" {
		text, err := os.ReadFile(a.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("tls.ca: there is no certificate in " + a.TLS.CA)
		}
	}
	if cert, key := a.TLS.Cert, a.TLS.Key; cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
	}
	return c, nil
}
