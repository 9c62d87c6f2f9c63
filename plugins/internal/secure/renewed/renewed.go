// Package renewed is TLS for clients of gRPC whose files may change.
package renewed

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
)

// Credentials are a client's, whose files are read at each connection.
func Credentials(files *secure.TLS) credentials.TransportCredentials { return renewed{files} }

type renewed struct{ files *secure.TLS }

func (r renewed) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := r.files.Config()
	if err != nil {
		return nil, nil, err
	}
	if config.ServerName != "" {
		authority = config.ServerName // which gRPC takes the name from
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, c)
}

func (r renewed) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are a client's credentials")
}

func (r renewed) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (r renewed) Clone() credentials.TransportCredentials { return r }

// OverrideServerName does nothing: the config says the name.
func (r renewed) OverrideServerName(string) error { return nil }
