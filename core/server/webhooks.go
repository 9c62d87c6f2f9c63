package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/coxswain-mesh/coxswain/core/hooks"
)

// listenForWebhooks serves the webhook port, once there is a certificate.
func (s *Server) listenForWebhooks(ctx context.Context) error {
	cfg := hooks.Config{
		Address: s.cfg.TLS.Webhooks.Address, Plugins: s.control, Log: s.of("hooks"), TLS: s.cfg.TLS.files,
		Listening: func(at net.Addr) { s.ports.listening("https", at) },
	}
	if s.cfg.TLS.Webhooks.CAFile != "" {
		cfg.Clients = s.cfg.TLS.Webhooks.pool
	}
	if !s.cfg.TLS.named() {
		if s.issued == nil {
			return errors.New(
				"httpsAddr: the webhook port needs a certificate: name files (tlsCertFile, tlsKeyFile, caCertFile), or have a plugin make it (controller/ca)",
			)
		}
		select {
		case <-s.issued.first:
		case <-ctx.Done():
			return nil
		}
		cfg.TLS = func(context.Context) (*tls.Config, error) {
			own, _ := s.issued.now()
			return s.cfg.TLS.with([]tls.Certificate{*own}, nil), nil
		}
	}
	return hooks.New(cfg).Run(ctx)
}
