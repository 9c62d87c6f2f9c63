package xds

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // which is asked for by its name
	"google.golang.org/grpc/keepalive"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secure/renewed"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// checkAddress reports what is wrong with how the server is reached.
func (c *Config) checkAddress() error {
	if err := c.TLS.Check("tls"); err != nil {
		return err
	}
	path, local := strings.CutPrefix(c.Address, "unix://")
	if local && !strings.HasPrefix(path, "/") {
		return strict.Errorf("address", "a Unix socket is written unix:///PATH")
	}
	if !local {
		host, port, err := net.SplitHostPort(c.host())
		if err != nil || host == "" || port == "" || strings.ContainsAny(c.host(), "/@ ") {
			return strict.Errorf("address", "is none such as xds://istiod.example:15010 or unix:///run/xds.sock")
		}
		ip, err := netip.ParseAddr(host)
		local = host == "localhost" || err == nil && ip.IsLoopback()
	}
	if c.TokenFile != "" && c.TLS == nil && !local {
		return strict.Errorf("tokenFile", "needs tls: anybody could read a token that travels in plain text")
	}
	return nil
}

// host is HOST:PORT of the address.
func (c *Config) host() string { return strings.TrimPrefix(c.Address, "xds://") }

// target is the address as gRPC writes it.
func (c *Config) target() string {
	if strings.HasPrefix(c.Address, "unix://") {
		return c.Address
	}
	return "dns:///" + c.host()
}

// dial makes a client. It connects when it is asked to, and once: when to try again is its user's
// affair.
func (c *Config) dial() (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if c.TLS != nil {
		security = renewed.Credentials(c.TLS)
	}
	return grpc.NewClient(c.target(),
		grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.Limits.MessageBytes),
			grpc.ForceCodecV2(counting{encoding.GetCodecV2("proto"), c.Limits.Resources})),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.KeepAlive, Timeout: silence}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: c.MaxRetry, MaxDelay: c.MaxRetry}, MinConnectTimeout: patience}),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
}

const (
	// silence is how long a sign of life may take, patience how long a connection.
	silence, patience = 10 * time.Second, 10 * time.Second
)

// token is that of the file; empty: there is none.
func (c *Config) token() (string, error) {
	if c.TokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("tokenFile: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("tokenFile: %s has no token", c.TokenFile) // and what it has is nobody's business
	}
	return token, nil
}
