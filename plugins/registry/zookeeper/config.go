package zookeeper

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml; the schema says what each field means.
type Config struct {
	Servers         []string          `json:"servers" min:"1" doc:"Servers of one ensemble, as HOST:PORT."`
	Username        string            `json:"username" doc:"User of the authentication scheme digest."`
	Password        string            `json:"password" doc:"The user's password."`
	TLS             tlsFiles          `json:"tls" doc:"For servers' secureClientPort."`
	Roots           roots             `json:"roots" doc:"Where things stand, as absolute paths, a chroot included; empty: they are not read."`
	Interfaces      instances.Names   `json:"interfaces" doc:"Interfaces that count."`
	Applications    instances.Names   `json:"applications" doc:"Applications that are read."`
	Host            string            `json:"host" doc:"The host of an interface; {service} stands for {version}.{group}.{interface}."`
	ApplicationHost string            `json:"applicationHost" doc:"The host of an application; empty: applications are no services of their own."`
	ServicePorts    map[string]uint32 `json:"servicePorts" doc:"Ports of services in the mesh by Dubbo's protocol, such as tri, whatever ports their providers have."`
	Protocols       map[string]string `json:"protocols" doc:"Protocols of the mesh by Dubbo's, beside those that are known."`
	Labels          map[string]string `json:"labels" doc:"Further labels, and the parameters whose values they have."`
	Meta            metaFields        `json:"meta" doc:"Names of parameters."`
	MeshNamespace   string            `json:"meshNamespace" doc:"The namespace that the services are in."`
	Cluster         string            `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	Session         time.Duration     `json:"session" min:"1s" max:"10m" doc:"Session timeout that is asked for; a server that is silent for two thirds of it is given up."`
	Settle          time.Duration     `json:"settle" max:"1h" doc:"How long after the beginning of a session a list that has become empty is not believed."`
	MaxRetry        time.Duration     `json:"maxRetry" min:"250ms" max:"1h" doc:"The longest wait after failures."`
	Refresh         time.Duration     `json:"refresh" min:"1s" max:"24h" doc:"How often all is read once more: ZooKeeper loses a watch on what may not be read when it changes."`
	Limits          limits            `json:"limits"`
}

type tlsFiles struct {
	Enabled    bool   `json:"enabled"`
	CAFile     string `json:"caFile" doc:"PEM file with the roots that are trusted; the system's where there is none."`
	CertFile   string `json:"certFile" doc:"PEM file with the client's certificate."`
	KeyFile    string `json:"keyFile" doc:"PEM file with its key."`
	ServerName string `json:"serverName" doc:"The name that servers' certificates must have; the address's host where there is none."`
}

type roots struct {
	Interfaces   string `json:"interfaces" doc:"Providers by interface: the registry's group."`
	Applications string `json:"applications" doc:"Instances by application."`
	Metadata     string `json:"metadata" doc:"What applications' instances serve."`
	Rules        string `json:"rules" doc:"Rules of the configuration center."`
}

type metaFields struct {
	Region         string `json:"region"`
	Zone           string `json:"zone"`
	Subzone        string `json:"subzone"`
	ServiceAccount string `json:"serviceAccount" doc:"Its service account; it speaks mutual TLS then."`
}

type limits struct {
	Services    int `json:"services" min:"1" max:"1073741824" doc:"Interfaces, and applications; of more the first in order count."`
	Instances   int `json:"instances" min:"1" max:"1073741824" doc:"Nodes of providers and instances; those that come when there are as many are left out."`
	NodeBytes   int `json:"nodeBytes" min:"64" max:"900000" doc:"A larger name or value of a provider or an instance is refused."`
	AnswerBytes int `json:"answerBytes" min:"65536" max:"1073741824" doc:"The largest answer that is taken."`
	Reads       int `json:"reads" min:"1" max:"256" doc:"Nodes that are read at once."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Servers:    []string{"127.0.0.1:2181"},
		Roots:      roots{"/dubbo", "/services", "/dubbo/metadata", "/dubbo/config/dubbo"},
		Interfaces: instances.Names{Exclude: []string{"org.apache.dubbo.metadata.*"}},
		Host:       "{service}.dubbo", ApplicationHost: "{application}.dubbo-application",
		Labels: map[string]string{"tag": "dubbo.tag"}, Meta: metaFields{"region", "zone", "subzone", "service-account"},
		MeshNamespace: "default", Cluster: "Kubernetes", Session: 10 * time.Second, Settle: 30 * time.Second,
		MaxRetry: 15 * time.Second, Refresh: 5 * time.Minute,
		Limits: limits{10_000, 100_000, 64 << 10, 64 << 20, 32},
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for _, check := range []func() error{c.checkServers, c.checkRoots, c.checkNames, c.checkPorts} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkServers() error {
	if len(c.Servers) == 0 {
		return strict.Errorf("servers", "at least one is needed")
	}
	for i, s := range c.Servers {
		if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" {
			return strict.Errorf(strict.At("servers", i), "%q is not HOST:PORT; a chroot belongs to roots", s)
		}
	}
	switch t := c.TLS; {
	case c.Username == "" && c.Password != "":
		return strict.Errorf("username", "a password is given without one")
	case strings.Contains(c.Username, ":"):
		return strict.Errorf("username", "%q holds a colon", c.Username)
	case !t.Enabled && t != tlsFiles{}:
		return strict.Errorf("tls.enabled", "is not true, though there is more of tls")
	case (t.CertFile == "") != (t.KeyFile == ""):
		return strict.Errorf("tls", "certFile and keyFile belong together")
	}
	return nil
}

func (c *Config) checkRoots() error {
	for _, r := range []struct{ name, path string }{
		{"interfaces", c.Roots.Interfaces}, {"applications", c.Roots.Applications}, {"metadata", c.Roots.Metadata}, {"rules", c.Roots.Rules},
	} {
		if r.path != "" && (r.path[0] != '/' || r.path == "/" || path.Clean(r.path) != r.path) {
			return strict.Errorf("roots."+r.name, "%q is no path such as /dubbo", r.path)
		}
	}
	if c.Roots.Interfaces == "" && c.Roots.Applications == "" {
		return strict.Errorf("roots", "neither interfaces nor applications are read")
	}
	if err := c.Interfaces.Check("interfaces", "com.example.*"); err != nil {
		return err
	}
	return c.Applications.Check("applications", "com.example.*")
}

func (c *Config) checkNames() error {
	whole := c.host(igv{"com.example.Orders", "blue", "1.0.0"})
	if whole == c.host(igv{"com.example.Items", "blue", "1.0.0"}) || strings.ContainsAny(whole, "{}") || !hosts.ValidName(whole, false) {
		return strict.Errorf("host",
			"%q makes no DNS name of each interface; write such as {service}.dubbo, or {interface}.dubbo for all groups and versions in one",
			c.Host)
	}
	if c.ApplicationHost != "" {
		host := c.applicationHost("orders")
		if host == c.applicationHost("items") || strings.ContainsAny(host, "{}") || !hosts.ValidName(host, false) {
			return strict.Errorf("applicationHost",
				"%q makes no DNS name of each application; write such as {application}.dubbo-application",
				c.ApplicationHost)
		}
	}
	for label, parameter := range c.Labels {
		if !instances.IsLabel(label) {
			return strict.Errorf("labels", "%q can be no label", label)
		}
		if secret[parameter] {
			return strict.Errorf("labels", "%q is a secret", parameter)
		}
	}
	return instances.CheckNamespace(c.MeshNamespace)
}

func (c *Config) checkPorts() error {
	for name, n := range c.ServicePorts {
		if n < 1 || n > 65535 {
			return strict.Errorf("servicePorts", "%d of %s is not between 1 and 65535", n, name)
		}
	}
	known := maps.Clone(protocols)
	for name, p := range c.Protocols {
		if known[name] = hosts.Protocol(p); known[name] == "" {
			return strict.Errorf("protocols", "%q of %s is none of HTTP, HTTP2, HTTPS, GRPC, GRPC-WEB, TCP, TLS, MONGO, REDIS, MYSQL, UDP", p, name)
		}
	}
	c.Protocols = known
	return nil
}

// config returns what connections are made with; the files are read anew each time.
func (t *tlsFiles) config(address string) (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(address)
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
