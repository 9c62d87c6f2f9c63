package consul

import (
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

// Config is the entry's `config` in plugins.yaml; the schema says what each field means.
type Config struct {
	// Address is a URL, such as http://127.0.0.1:8500, or unix:///PATH.
	Address string `json:"address" doc:"URL of an agent or a server: http://, https:// or unix:///PATH."`
	// Token is an ACL token; TokenFile has one, and is read anew for each question.
	Token     string `json:"token" doc:"ACL token."`
	TokenFile string `json:"tokenFile" doc:"File with the ACL token; read anew for each question."`
	// Datacenters that are listed, as one; none: the agent's own.
	Datacenters []string `json:"datacenters" doc:"Datacenters whose instances count, as one; the agent's own where there are none."`
	// Namespace and Partition are Consul Enterprise's.
	Namespace string     `json:"namespace" doc:"Consul Enterprise's namespace."`
	Partition string     `json:"partition" doc:"Consul Enterprise's partition."`
	TLS       tlsFiles   `json:"tls"`
	Stale     bool       `json:"stale" doc:"Any server may answer, not only the leader. What would take things away is made sure of."`
	Services  selection  `json:"services"`
	Healthy   []string   `json:"healthy" enum:"passing,warning,critical" doc:"Statuses of instances that are sent requests."`
	Host      string     `json:"host" doc:"A service's host; {namespace} and {partition} may be in it, too."`
	Locality  placeKeys  `json:"locality" doc:"Keys of a node's metadata."`
	Protocol  string     `json:"protocol" doc:"Where neither metadata nor tags say; empty: found out by each proxy."`
	Meta      metaFields `json:"meta" doc:"Keys of an instance's metadata."`
	// ServicePort is the port of all services in the mesh; 0: that of the instances.
	ServicePort   uint32        `json:"servicePort" max:"65535" doc:"The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."`
	TaggedAddress string        `json:"taggedAddress" doc:"Which tagged address of instances and nodes is used, where there is one: lan, wan, lan_ipv4, …"`
	MeshNamespace string        `json:"meshNamespace" doc:"The namespace that the services are in."`
	Cluster       string        `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	Watches       int           `json:"watches" min:"2" max:"1000" doc:"Questions under way at once, at most."`
	MaxServices   int           `json:"maxServices" min:"1" max:"1000000" doc:"Services that are followed; of more the first in order are."`
	MaxInstances  int           `json:"maxInstances" min:"1" max:"10000000" doc:"Instances of all services; those that come when there are as many are left out."`
	MaxBytes      int64         `json:"maxBytes" min:"1024" doc:"The largest answer that is taken."`
	Wait          time.Duration `json:"wait" min:"1s" max:"10m" doc:"How long Consul lets a question wait for news."`
	Refresh       time.Duration `json:"refresh" min:"100ms" max:"1h" doc:"How late news may be where there are more services than watches."`
	Interval      time.Duration `json:"interval" max:"1h" doc:"The least time between two questions about the same."`
	MaxRetry      time.Duration `json:"maxRetry" min:"250ms" max:"1h" doc:"The longest wait after failures."`

	// socket is the path of a Unix socket, where the address is one.
	socket string
}

type tlsFiles struct {
	CAFile     string `json:"caFile" doc:"PEM file with the roots that are trusted; the system's where there is none."`
	CertFile   string `json:"certFile" doc:"PEM file with the client's certificate."`
	KeyFile    string `json:"keyFile" doc:"PEM file with its key."`
	ServerName string `json:"serverName" doc:"The name that the server's certificate must have; the address's host where there is none."`
}

// selection says which services and instances count.
type selection struct {
	instances.Names
	// All of Tags must be there, on the service for it to be listed and on the instance.
	Tags []string `json:"tags" doc:"Tags that an instance must have, all of them."`
	// NodeMeta is of the node; Filter is an expression of Consul's over instances.
	NodeMeta map[string]string `json:"nodeMeta" doc:"Metadata that the instance's node must have."`
	Filter   string            `json:"filter" doc:"Consul's filter expression over instances, such as Service.Meta.env == prod."`
}

// placeKeys are keys of a node's metadata.
type placeKeys struct {
	Region  string `json:"region" doc:"The datacenter where the node has none."`
	Zone    string `json:"zone"`
	Subzone string `json:"subzone"`
}

// metaFields are keys of an instance's metadata.
type metaFields struct {
	Protocol       string `json:"protocol"`
	Port           string `json:"port" doc:"The service's port in the mesh."`
	External       string `json:"external" doc:"Anything but false: outside of the mesh."`
	ServiceAccount string `json:"serviceAccount" doc:"Its service account; it speaks mutual TLS then."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Address: "http://127.0.0.1:8500", Stale: true, Healthy: []string{passing, warning},
		Services: selection{Names: instances.Names{Exclude: []string{"consul"}}},
		Host:     "{service}.service.consul", Locality: placeKeys{"region", "zone", "subzone"}, Protocol: "HTTP",
		Meta: metaFields{"protocol", "port", "external", "service-account"}, MeshNamespace: "default", Cluster: "Kubernetes",
		Watches: min(most, 90), MaxServices: 10_000, MaxInstances: 100_000, MaxBytes: 64 << 20, Wait: time.Minute,
		Refresh: 15 * time.Second, Interval: 250 * time.Millisecond, MaxRetry: 15 * time.Second,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for _, check := range []func() error{c.checkAddress, c.checkBounds, c.checkMapping} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
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
		return strict.Errorf("tls", "a module's calls are made by its runner, which trusts the system's roots and has "+
			"no certificate of its own: run registry/consul as a process for this")
	case u.Scheme != "https":
		return strict.Errorf("tls", "the address does not start with https://")
	case (t.CertFile == "") != (t.KeyFile == ""):
		return strict.Errorf("tls", "certFile and keyFile belong together")
	}
	return nil
}

func (c *Config) checkBounds() error {
	if c.Watches > most {
		return strict.Errorf("watches", "%d is not between 2 and %d", c.Watches, most)
	}
	c.Wait = min(c.Wait, longest)
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
		return strict.Errorf("host",
			"%q makes no DNS name of each service; write such as {service}.service.consul, with {namespace} and {partition} if you like",
			c.Host)
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
