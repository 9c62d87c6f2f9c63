//go:build !wasip1

package process

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// served is go-plugin's view of the plugin's side.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

var _ plugin.GRPCPlugin = (*served)(nil)

func (p *served) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(service(), p.server)
	return nil
}

func (p *served) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return Open(conn)
}

// Set is what the core's go-plugin client dispenses: Name gives a *Carrier.
func Set() plugin.PluginSet { return plugin.PluginSet{Name: &served{}} }

// DialOptions are the core's, for go-plugin's client.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window)}
}
