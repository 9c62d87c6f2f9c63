package zookeeper

import (
	"cmp"
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

// Config is the entry's `config` in plugins.yaml, checked.
type Config struct {
	written
	session, settle, maxRetry, refresh time.Duration
}

// written is the config as it is written; the schema says what the fields mean.
type written struct {
	Servers         []string          `json:"servers"`
	Username        string            `json:"username"`
	Password        string            `json:"password"`
	TLS             tlsFiles          `json:"tls"`
	Roots           roots             `json:"roots"`
	Interfaces      instances.Names   `json:"interfaces"`
	Applications    instances.Names   `json:"applications"`
	Host            string            `json:"host"`
	ApplicationHost string            `json:"applicationHost"`
	ServicePorts    map[string]uint32 `json:"servicePorts"`
	Protocols       map[string]string `json:"protocols"`
	Labels          map[string]string `json:"labels"`
	Meta            metaFields        `json:"meta"`
	MeshNamespace   string            `json:"meshNamespace"`
	Cluster         string            `json:"cluster"`
	Session         string            `json:"session"`
	Settle          string            `json:"settle"`
	MaxRetry        string            `json:"maxRetry"`
	Refresh         string            `json:"refresh"`
	Limits          limits            `json:"limits"`
}

type tlsFiles struct {
	Enabled    bool   `json:"enabled"`
	CAFile     string `json:"caFile"`
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	ServerName string `json:"serverName"`
}

type roots struct {
	Interfaces   string `json:"interfaces"`
	Applications string `json:"applications"`
	Metadata     string `json:"metadata"`
	Rules        string `json:"rules"`
}

type metaFields struct {
	Region         string `json:"region"`
	Zone           string `json:"zone"`
	Subzone        string `json:"subzone"`
	ServiceAccount string `json:"serviceAccount"`
}

type limits struct {
	Services    int `json:"services"`
	Instances   int `json:"instances"`
	NodeBytes   int `json:"nodeBytes"`
	AnswerBytes int `json:"answerBytes"`
	Reads       int `json:"reads"`
}

// parse reads a config, fills in defaults and checks it. Errors are *sdk.FieldError.
func parse(config []byte) (*Config, error) {
	c := &Config{written: written{
		Servers:    []string{"127.0.0.1:2181"},
		Roots:      roots{"/dubbo", "/services", "/dubbo/metadata", "/dubbo/config/dubbo"},
		Interfaces: instances.Names{Exclude: []string{"org.apache.dubbo.metadata.*"}},
		Host:       "{service}.dubbo", ApplicationHost: "{application}.dubbo-application",
		Labels: map[string]string{"tag": "dubbo.tag"}, Meta: metaFields{"region", "zone", "subzone", "service-account"},
		MeshNamespace: "default", Cluster: "Kubernetes", Session: "10s", Settle: "30s", MaxRetry: "15s", Refresh: "5m",
		Limits: limits{10_000, 100_000, 64 << 10, 64 << 20, 32},
	}}
	if err := strict.Decode(config, &c.written); err != nil {
		return nil, err
	}
	for _, check := range []func() error{c.checkServers, c.checkRoots, c.checkNames, c.checkPorts, c.checkDurations, c.checkLimits} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c, nil
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
		return strict.Errorf("host", "%q makes no DNS name of each interface; write such as {service}.dubbo, or {interface}.dubbo for all groups and versions in one", c.Host)
	}
	if c.ApplicationHost != "" {
		host := c.applicationHost("orders")
		if host == c.applicationHost("items") || strings.ContainsAny(host, "{}") || !hosts.ValidName(host, false) {
			return strict.Errorf("applicationHost", "%q makes no DNS name of each application; write such as {application}.dubbo-application", c.ApplicationHost)
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

func (c *Config) checkDurations() error {
	return cmp.Or(
		strict.Between("session", c.Session, &c.session, time.Second, 10*time.Minute),
		strict.Between("settle", c.Settle, &c.settle, 0, time.Hour),
		strict.Between("maxRetry", c.MaxRetry, &c.maxRetry, firstRetry, time.Hour),
		strict.Between("refresh", c.Refresh, &c.refresh, time.Second, 24*time.Hour),
	)
}

func (c *Config) checkLimits() error {
	return cmp.Or(
		strict.Within("limits.services", c.Limits.Services, 1, 1<<30),
		strict.Within("limits.instances", c.Limits.Instances, 1, 1<<30),
		strict.Within("limits.nodeBytes", c.Limits.NodeBytes, 64, 900_000),
		strict.Within("limits.answerBytes", c.Limits.AnswerBytes, 64<<10, 1<<30),
		strict.Within("limits.reads", c.Limits.Reads, 1, 256),
	)
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
