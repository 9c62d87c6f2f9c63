package consul

import (
	"cmp"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml, checked, with its durations read.
type Config struct {
	written
	Wait, Refresh, Interval, MaxRetry time.Duration
	// socket is the path of a Unix socket, where the address is one.
	socket string
}

// written is the config as it is written.
type written struct {
	// Address is a URL, such as http://127.0.0.1:8500, or unix:///PATH.
	Address string `json:"address"`
	// Token is an ACL token; TokenFile has one, and is read anew for each question.
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
	// Datacenters that are listed, as one; none: the agent's own.
	Datacenters []string `json:"datacenters"`
	// Namespace and Partition are Consul Enterprise's.
	Namespace string     `json:"namespace"`
	Partition string     `json:"partition"`
	TLS       tlsFiles   `json:"tls"`
	Stale     bool       `json:"stale"`
	Services  selection  `json:"services"`
	Healthy   []string   `json:"healthy"`
	Host      string     `json:"host"`
	Locality  placeKeys  `json:"locality"`
	Protocol  string     `json:"protocol"`
	Meta      metaFields `json:"meta"`
	// ServicePort is the port of all services in the mesh; 0: that of the instances.
	ServicePort   uint32 `json:"servicePort"`
	TaggedAddress string `json:"taggedAddress"`
	MeshNamespace string `json:"meshNamespace"`
	Cluster       string `json:"cluster"`
	Watches       int    `json:"watches"`
	MaxBytes      int64  `json:"maxBytes"`
	// Durations.
	WrittenWait     string `json:"wait"`
	WrittenRefresh  string `json:"refresh"`
	WrittenInterval string `json:"interval"`
	WrittenMaxRetry string `json:"maxRetry"`
}

type tlsFiles struct {
	CAFile     string `json:"caFile"`
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	ServerName string `json:"serverName"`
}

// selection says which services and instances count.
type selection struct {
	instances.Names
	// All of Tags must be there, on the service for it to be listed and on the instance.
	Tags []string `json:"tags"`
	// NodeMeta is of the node; Filter is an expression of Consul's over instances.
	NodeMeta map[string]string `json:"nodeMeta"`
	Filter   string            `json:"filter"`
}

// placeKeys are keys of a node's metadata.
type placeKeys struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	Subzone string `json:"subzone"`
}

// metaFields are keys of an instance's metadata.
type metaFields struct {
	Protocol       string `json:"protocol"`
	Port           string `json:"port"`
	External       string `json:"external"`
	ServiceAccount string `json:"serviceAccount"`
}

// defaults are what counts where the config says nothing.
func defaults() written {
	return written{
		Address: "http://127.0.0.1:8500", Stale: true, Healthy: []string{passing, warning},
		Services: selection{Names: instances.Names{Exclude: []string{"consul"}}},
		Host:     "{service}.service.consul", Locality: placeKeys{"region", "zone", "subzone"}, Protocol: "HTTP",
		Meta: metaFields{"protocol", "port", "external", "service-account"}, MeshNamespace: "default", Cluster: "Kubernetes",
		Watches: min(most, 90), MaxBytes: 64 << 20, WrittenWait: "1m", WrittenRefresh: "15s", WrittenInterval: "250ms", WrittenMaxRetry: "15s",
	}
}

// parse reads a config, fills in defaults and checks it. Errors are *sdk.FieldError.
func parse(config []byte) (*Config, error) {
	c := &Config{written: defaults()}
	if err := strict.Decode(config, &c.written); err != nil {
		return nil, err
	}
	for _, check := range []func() error{c.checkAddress, c.checkDurations, c.checkBounds, c.checkMapping} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Config) checkAddress() error {
	u, err := url.Parse(c.Address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "unix":
		return strict.Errorf("address", "%q is no URL, such as http://127.0.0.1:8500, https://consul.example.com:8501 or unix:///run/consul.sock", c.Address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return strict.Errorf("address", "a user, a query or a fragment don't belong there")
	case u.Scheme == "unix" && !canStop:
		return strict.Errorf("address", "a module has no sockets: give one that starts with http:// or https://")
	case u.Scheme == "unix":
		c.socket, c.Address = u.Path, "http://consul"
	case u.Host == "":
		return strict.Errorf("address", "%q has no host", c.Address)
	}
	if c.Token != "" && c.TokenFile != "" {
		return strict.Errorf("tokenFile", "token is given, too; one is enough")
	}
	switch t := c.TLS; {
	case t == tlsFiles{}:
	case !canStop:
		return strict.Errorf("tls", "a module's calls are made by its runner, which trusts the system's roots and has no certificate of its own: run registry/consul as a process for this")
	case u.Scheme != "https":
		return strict.Errorf("tls", "the address does not start with https://")
	case (t.CertFile == "") != (t.KeyFile == ""):
		return strict.Errorf("tls", "certFile and keyFile belong together")
	}
	return nil
}

func (c *Config) checkDurations() error {
	err := cmp.Or(
		strict.Between("wait", c.WrittenWait, &c.Wait, time.Second, 10*time.Minute),
		strict.Between("refresh", c.WrittenRefresh, &c.Refresh, 100*time.Millisecond, time.Hour),
		strict.Between("interval", c.WrittenInterval, &c.Interval, 0, time.Hour),
		strict.Between("maxRetry", c.WrittenMaxRetry, &c.MaxRetry, firstRetry, time.Hour),
	)
	if err != nil {
		return err
	}
	c.Wait = min(c.Wait, longest)
	return nil
}

func (c *Config) checkBounds() error {
	if c.Watches < 2 || c.Watches > most {
		return strict.Errorf("watches", "%d is not between 2 and %d", c.Watches, most)
	}
	if c.MaxBytes < 1<<10 {
		return strict.Errorf("maxBytes", "%d is less than 1024", c.MaxBytes)
	}
	if c.ServicePort > 65535 {
		return strict.Errorf("servicePort", "%d is not between 1 and 65535", c.ServicePort)
	}
	for i, d := range c.Datacenters {
		if d == "" || slices.Contains(c.Datacenters[:i], d) {
			return strict.Errorf(strict.At("datacenters", i), "%q is empty, or there twice", d)
		}
	}
	if len(c.Datacenters) == 0 {
		c.Datacenters = []string{""}
	}
	return nil
}

func (c *Config) checkMapping() error {
	known := []string{passing, warning, critical}
	for i, h := range c.Healthy {
		if !slices.Contains(known, h) {
			return strict.Errorf(strict.At("healthy", i), "%q is no status that can be healthy%s", h, nearest.Suggest(h, known))
		}
	}
	if err := c.Services.Check("services", "web-*"); err != nil {
		return err
	}
	if host := c.host("web"); host == c.Host || strings.ContainsAny(host, "{}") || !hosts.ValidName(host, false) {
		return strict.Errorf("host", "%q makes no DNS name of each service; write such as {service}.service.consul, with {namespace} and {partition} if you like", c.Host)
	}
	if err := instances.CheckProtocol("protocol", &c.Protocol); err != nil {
		return err
	}
	return instances.CheckNamespace(c.MeshNamespace)
}

// host returns a service's host in the mesh.
func (c *Config) host(service string) string {
	or := func(s string) string {
		if s == "" {
			return "default"
		}
		return s
	}
	return strings.ToLower(strings.NewReplacer("{service}", service, "{namespace}", or(c.Namespace), "{partition}", or(c.Partition)).Replace(c.Host))
}

// selects reports whether a service counts, by its name and the tags of its instances.
func (s *selection) selects(name string, tags []string) bool {
	if !s.Select(name) {
		return false
	}
	for _, t := range s.Tags {
		if !slices.Contains(tags, t) {
			return false
		}
	}
	return true
}

// filter is an expression that all instances that count fulfil; empty: all do.
// Source: Consul, "Filtering".
func (c *Config) filter() string {
	var all []string
	if c.Services.Filter != "" {
		all = append(all, "("+c.Services.Filter+")")
	}
	for _, t := range c.Services.Tags {
		all = append(all, strconv.Quote(t)+" in Service.Tags")
	}
	return strings.Join(all, " and ")
}

// token returns the token to ask with.
func (c *Config) token() (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	text, err := os.ReadFile(c.TokenFile)
	return strings.TrimSpace(string(text)), err
}
