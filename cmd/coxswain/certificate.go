package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/certificate"
	"github.com/spf13/cobra"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// certificateCommand is `coxswain certificate`.
func certificateCommand(p *program) *cobra.Command {
	var config certificate.Config
	follow := false
	say := func(leaf *x509.Certificate, err error) {
		if err != nil {
			_, _ = fmt.Fprintf(p.err, "no certificate: %v; it is tried again\n", err)
			return
		}
		_, _ = fmt.Fprintf(p.out, "a certificate of %v until %s\n", leaf.URIs, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	c := &cobra.Command{
		Use:   "certificate",
		Short: "Get a workload's certificate from a control plane, for a proxy that has no agent",
		Long: `Get a workload's certificate from a control plane that signs them (controller/ca), for a proxy that has no agent.

The folder gets cert-chain.pem, key.pem and root-cert.pem, all at once; the key never leaves this machine. With --follow the next certificate is
fetched when half of the life of one is over, and the command runs until it is ended. What is shown is the token of a file
(coxswain token create), and the certificate that is in the folder.`,
		Example: `  coxswain certificate --roots root-cert.pem --token web.token --dir certs
  coxswain certificate --roots root-cert.pem --token web.token --dir certs --follow &
  coxswain bootstrap --name web --certs certs --sds sds > web.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if config.Dir == "" {
				return usageError{fmt.Errorf("--dir: name the folder for the files")}
			}
			if !follow {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				leaf, err := config.Obtain(ctx)
				if status.Code(err) == grpccodes.Unavailable {
					return fmt.Errorf("%w; is a control plane's secure port there? (--addr)", err)
				}
				if err != nil {
					return err
				}
				say(leaf, nil)
				return nil
			}
			return config.Follow(ctx, say)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&config.Address, "addr", "127.0.0.1:15012", "the control plane's secure port")
	f.StringVar(&config.ServerName, "serverName", "istiod.istio-system.svc", "DNS name that its certificate must have")
	f.StringVar(&config.Roots, "roots", "", "file with the authorities of that certificate (PEM); those in the folder count, too")
	f.StringVar(&config.Token, "token", "", "file with the token that is shown; empty: none")
	f.StringVar(&config.Dir, "dir", "", "folder for the files")
	f.DurationVar(&config.TTL, "ttl", 0, "how long the certificate is to count; 0: as the control plane says")
	f.BoolVar(&follow, "follow", false, "get the next certificates, too")
	return c
}
