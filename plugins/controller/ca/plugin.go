// Package ca is the built-in plugin controller/ca: a certificate authority that signs certificates
// of workloads, as istiod's does.
//
// The package authority makes certificates; keeper.go keeps a root that signs itself; plugged.go
// reads one that is plugged in; external.go has others sign, by requests of a cluster (requests.go)
// or by another server (server.go); call.go answers who wants a certificate; roots.go hands the
// root out to namespaces, trustbundle.go to the cluster.
package ca

import (
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// agent is how the API server knows the plugin.
const agent = "coxswain/controller-ca"

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Plugged is a directory with an authority that others made.
	Plugged string `json:"plugged" doc:"Directory of a CA that is plugged in: ca-cert.pem, ca-key.pem, cert-chain.pem and root-cert.pem, or tls.crt, tls.key and ca.crt; with ca-crl.pem, revocation lists. It is followed. Where it has no key, the CA signs itself."`
	// Keep is where a root that signs itself is kept: memory, files or secret.
	Keep string `json:"keep" enum:"memory,file,secret" doc:"Where a CA that signs itself is kept: in memory, so that each start has another one, in a file, or in a Secret of the cluster."`
	// File is where, for `keep: file`.
	File string `json:"file" doc:"The file of keep: file; it holds the CA's key, and only its user may read it."`
	// Namespace and Secret are where, for `keep: secret`.
	Namespace string `json:"namespace" min:"1" doc:"The control plane's namespace: of the Secret, and of the Lease by which replicas agree on who hands the root out."`
	Secret    string `json:"secret" min:"1" doc:"The Secret of keep: secret."`
	// External is about others who sign, and for whom this one does.
	External External `json:"external" doc:"Others who sign in this CA's place: it is a registration authority then, which checks who asks and for what; and others for whom it signs in the place of workloads."`
	// RootsFile is where the roots are written to, for whoever is to believe them.
	RootsFile string `json:"rootsFile" doc:"A file that the roots are written to, for proxies to believe the control plane by; without it they are in the table alone."`
	// TTL is how long certificates count that ask for nothing else, MaxTTL the most they may ask
	// for.
	TTL    time.Duration `json:"ttl" above:"0s" doc:"How long a certificate counts that asks for nothing else."`
	MaxTTL time.Duration `json:"maxTTL" above:"0s" doc:"The most that a certificate may ask for."`
	// Root is about roots that sign themselves.
	Root Root `json:"root" doc:"What a CA that signs itself is like."`
	// ReplaceRoots are roots of others that are overwritten, by their SHA-256.
	ReplaceRoots []string `json:"replaceRoots" doc:"Roots of somebody else (SHA-256 of the certificate) that this CA's takes the place of, wherever it finds them. Any other one is left as it is."`
	// Distribute is to whom the roots are handed out.
	Distribute string `json:"distribute" enum:"nowhere,namespaces,cluster" doc:"Where in the cluster the roots are handed out: in the ConfigMap istio-ca-root-cert of each namespace, or in the cluster's ClusterTrustBundle istio.io:istiod-ca:root-cert."`
}

// Root is about roots that sign themselves.
type Root struct {
	TTL   time.Duration `json:"ttl" above:"0s" doc:"How long its root certificate counts."`
	Bits  int           `json:"keySize" min:"2048" max:"8192" doc:"Bits of its RSA key."`
	Check time.Duration `json:"check" min:"1s" doc:"How often it is looked whether a new root certificate is due, give or take a quarter."`
	Grace int           `json:"grace" min:"1" max:"99" doc:"How many percent of its life are left when the next root certificate is made, with the same key."`
}

// Where roots are handed out.
const nowhere, toCluster = "nowhere", "cluster"

func defaults() Config {
	return Config{
		Access: kube.DefaultAccess(), Plugged: "etc/cacerts", Keep: "memory", Namespace: "istio-system", Secret: "istio-ca-secret", Distribute: nowhere,
		TTL: 24 * time.Hour, MaxTTL: 90 * 24 * time.Hour,
		External: External{By: byNobody, Roots: "etc/external-ca-cert/root-cert.pem", Timeout: 4 * time.Second},
		Root:     Root{TTL: 10 * 365 * 24 * time.Hour, Bits: 2048, Check: time.Hour, Grace: 20},
	}
}

// Check implements sdk.Checker.
func (c *Config) Check() error {
	switch {
	case c.MaxTTL < c.TTL:
		return strict.Errorf("maxTTL", "%s is less than ttl, %s", c.MaxTTL, c.TTL)
	case c.Keep == "file" && c.File == "":
		return strict.Errorf("file", "is needed with `keep: file`")
	case c.Keep != "file" && c.File != "":
		return strict.Errorf("file", "is for `keep: file`")
	}
	if _, err := fingerprints(c.ReplaceRoots); err != nil {
		return err
	}
	if err := c.External.check(); err != nil {
		return err
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "controller/ca", Version: "1", Reads: []string{state.Mesh}, Publishes: []string{bundle.Table, kinds.FaultTable},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) { return New(c) }),
	}
}

// New returns the controller. The error is a *sdk.FieldError: a CA that is plugged in and can't be
// used, or a cluster whose address isn't known.
func New(c Config) (*Controller, error) {
	made := newController(c)
	if c.External.By == byNobody {
		a, err := made.plugged.read(time.Now())
		if err == nil {
			_, err = made.plugged.lists(a)
		}
		if err != nil && !errors.Is(err, errNone) {
			return nil, &sdk.FieldError{Field: "plugged", Err: err}
		}
	}
	if c.Keep == "secret" && c.External.By == byNobody || c.Distribute != nowhere || c.External.asksCluster() {
		client, err := c.Client(agent)
		if err != nil {
			return nil, err
		}
		made.client = client
	}
	if c.External.asksCluster() {
		made.others.requests = newRequests(made.client.Objects, c.External)
	}
	if c.External.By == byServer {
		var err error
		if made.others.server, err = newServer(c.External); err != nil {
			return nil, err
		}
	}
	switch c.Keep {
	case "file":
		made.keeper = file(c.File)
	case "secret":
		if made.client != nil {
			made.keeper = &secret{client: made.client.Core, namespace: c.Namespace, name: c.Secret}
		}
	default:
		made.keeper = &memory{}
	}
	return made, nil
}

// jitter is a duration, give or take a quarter: random is between 0 and 1.
func jitter(d time.Duration, random float64) time.Duration {
	return time.Duration(float64(d) * (0.75 + random/2))
}
