package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// istioVersion whose answers a proxy understands, where nothing else is said.
const istioVersion = "1.31.0"

func bootstrapCommand(p *program) *cobra.Command {
	var b bootstrap.Config
	var labels, metadata, header []string
	c := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print the bootstrap of an Envoy that this control plane serves",
		Long: `Print the bootstrap of an Envoy that this control plane serves.

The proxy is marked as one without an agent (metadata COXSWAIN_NO_AGENT), so that it gets nothing that waits for certificates from an agent's
socket. With --certs it speaks mutual TLS in the mesh with certificates from files. With --interception NONE a sidecar's listeners are bound to ports of their own: no iptables rules are needed to reach them.`,
		Example: `  coxswain bootstrap --type router --name gateway --labels istio=ingressgateway > gateway.json
  coxswain bootstrap --name client --interception NONE --protocol delta > client.json
  envoy -c client.json
  coxswain bootstrap --name client --certs /etc/certs --sds /run/secrets > client.json
  coxswain bootstrap --name edge --header 'x-api-key: s3cret' --rtds tuning > edge.json
  coxswain bootstrap --xds 10.0.0.5:15012 --xdsCA ca.crt --xdsName coxswain.example --xdsCert tls.crt --xdsKey tls.key > secure.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			if b.Labels, err = pairs("labels", labels); err != nil {
				return err
			}
			if b.Metadata, err = values("metadata", metadata); err != nil {
				return err
			}
			if b.Headers, err = headers(header); err != nil {
				return err
			}
			if b.Type == "gateway" {
				b.Type = bootstrap.Router
			}
			out, err := bootstrap.New(b)
			if err != nil {
				return usageError{err}
			}
			if b.Certificates.SDS != "" {
				if err := bootstrap.WriteSecrets(b.Certificates); err != nil {
					return err
				}
			}
			_, err = p.out.Write(out)
			return err
		},
	}
	bootstrapFlags(c.Flags(), &b, &labels, &metadata, &header)
	return c
}

func bootstrapFlags(f *pflag.FlagSet, b *bootstrap.Config, labels, metadata, header *[]string) {
	f.SortFlags = false
	f.StringVar(&b.Type, "type", bootstrap.Sidecar, "sidecar or router (a gateway)")
	f.StringVar(&b.Name, "name", "envoy", "name of the proxy, in Kubernetes that of its pod")
	f.StringVarP(&b.Namespace, "namespace", "n", "default", "namespace of the proxy")
	f.StringVar(&b.IP, "ip", "127.0.0.1", "address of the proxy; endpoints with it are its own")
	f.StringVar(&b.Domain, "domain", "cluster.local", "DNS domain of the cluster")
	f.StringSliceVarP(labels, "labels", "l", nil, "labels of the workload, KEY=VALUE,…")
	f.StringVar(&b.ClusterID, "clusterID", "Kubernetes", "cluster that the proxy is in")
	f.StringVar(&b.Network, "network", "", "network that the proxy is in")
	f.StringVar(&b.Locality, "locality", "", "REGION/ZONE/SUBZONE")
	f.StringVar(&b.Interception, "interception", "", "how traffic gets into a sidecar: REDIRECT, TPROXY or NONE")
	f.StringVar(&b.IstioVersion, "istioVersion", istioVersion, "version of Istio whose answers the proxy understands")
	f.StringArrayVar(metadata, "metadata", nil, "metadata of the node, KEY=VALUE; VALUE may be JSON (repeat it for more)")
	f.StringVar(&b.XDS, "xds", "127.0.0.1:15010", "address of the control plane, HOST:PORT or unix:PATH")
	f.StringArrayVarP(header, "header", "H", nil, "header of each stream to the control plane, as NAME: VALUE, such as 'x-api-key: KEY' (repeat it for more)")
	f.StringVar(&b.RTDS, "rtds", "", "name of a runtime layer to ask the control plane for; empty: none")
	f.StringVar(&b.TLS.CA, "xdsCA", "", "file with the authorities of the control plane's certificate; given: TLS")
	f.StringVar(&b.TLS.Name, "xdsName", "", "DNS name that its certificate must have; empty: the host of --xds")
	f.StringVar(&b.TLS.Cert, "xdsCert", "", "file with the proxy's own certificate")
	f.StringVar(&b.TLS.Key, "xdsKey", "", "file with its key")
	f.StringVar(&b.Certificates.Files, "certs", "", "folder with the workload's cert-chain.pem, key.pem and root-cert.pem, for mutual TLS in the mesh")
	f.StringVar(&b.Certificates.SDS, "sds", "",
		"folder to write default.json and ROOTCA.json to, by which the proxy sees new files in --certs; empty: it reads them once")
	f.StringVar(&b.Protocol, "protocol", bootstrap.SotW, "sotw or delta")
	f.StringVar(&b.Admin, "admin", "127.0.0.1:15000", "address of Envoy's admin pages; empty: none")
}

// pairs reads KEY=VALUE.
func pairs(flag string, list []string) (map[string]string, error) {
	m := make(map[string]string, len(list))
	for _, s := range list {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, usageError{fmt.Errorf("--%s: %q is not KEY=VALUE", flag, s)}
		}
		m[key] = value
	}
	return m, nil
}

// headers reads NAME: VALUE.
func headers(list []string) (map[string]string, error) {
	m := make(map[string]string, len(list))
	for i, s := range list {
		name, value, ok := strings.Cut(s, ":")
		if !ok { // it may be a secret
			return nil, usageError{fmt.Errorf("--header: number %d of them is not NAME: VALUE", i+1)}
		}
		m[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return m, nil
}

// values reads KEY=VALUE, where VALUE may be a JSON object or list. Everything else is a string, as
// Istio's agent writes metadata.
func values(flag string, list []string) (map[string]any, error) {
	texts, err := pairs(flag, list)
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, len(texts))
	for key, text := range texts {
		m[key] = text
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return nil, usageError{fmt.Errorf("--%s: %s: %w", flag, key, err)}
			}
			m[key] = v
		}
	}
	return m, nil
}
