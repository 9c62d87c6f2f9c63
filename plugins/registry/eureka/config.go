package eureka

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml; the schema says what each field means.
type Config struct {
	secure.Login
	Servers           []string        `json:"servers" min:"1" doc:"URLs of Eureka's servers, up to and without /apps. One is asked; where it fails, the next."`
	RemoteRegions     []string        `json:"remoteRegions" doc:"Other regions, as the servers call them, whose instances count, too."`
	TLS               *secure.TLS     `json:"tls"`
	By                string          `json:"by" enum:"vip,application" doc:"What is a service of the mesh: each VIP address, or each application."`
	Applications      instances.Names `json:"applications"`
	Healthy           []string        `json:"healthy" enum:"UP,DOWN,STARTING,OUT_OF_SERVICE,UNKNOWN" doc:"Statuses of instances that are sent requests."`
	Host              string          `json:"host" doc:"A service's host."`
	Address           string          `json:"address" enum:"ip,hostname" doc:"Where an instance is: at its ipAddr or at its hostName."`
	ServicePort       uint32          `json:"servicePort" max:"65535" doc:"The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."`
	SecureServicePort uint32          `json:"secureServicePort" max:"65535" doc:"The same of secure ports."`
	Protocol          string          `json:"protocol" doc:"Of ports that are not secure, where metadata doesn't say; empty: found out by each proxy."`
	Meta              metaKeys        `json:"meta" doc:"Keys of an instance's metadata."`
	Locality          placeKeys       `json:"locality" doc:"Keys of an instance's metadata."`
	Region            string          `json:"region" doc:"The region of instances that have a zone and don't say which region it is in."`
	MeshNamespace     string          `json:"meshNamespace" doc:"The namespace that the services are in."`
	Cluster           string          `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	AllowEmpty        bool            `json:"allowEmpty" doc:"A server that has no instance at all is believed."`
	MaxInstances      int             `json:"maxInstances" min:"1" max:"10000000" doc:"Instances of all applications; those that come when there are as many are left out."`
	MaxBytes          int64           `json:"maxBytes" min:"1024" doc:"The largest answer that is taken."`
	Interval          time.Duration   `json:"interval" min:"50ms" max:"1h" doc:"How often it is asked what changed."`
	Full              time.Duration   `json:"full" min:"1s" max:"24h" doc:"How often it is asked for everything, whatever changes say."`
	DeltaWindow       time.Duration   `json:"deltaWindow" max:"1h" doc:"After how long without an answer everything is asked for: less than what the server keeps changes for (3m)."`
	Keep              time.Duration   `json:"keep" max:"24h" doc:"For how long what a server has forgotten stays, at most; the instance's lease is what counts below that."`
	Timeout           time.Duration   `json:"timeout" min:"1s" max:"10m" doc:"How long an answer may take."`
	MaxRetry          time.Duration   `json:"maxRetry" min:"250ms" max:"1h" doc:"The longest wait after failures."`
}

// metaKeys and placeKeys are keys of an instance's metadata.
type metaKeys struct {
	Weight         string `json:"weight"`
	Protocol       string `json:"protocol"`
	External       string `json:"external" doc:"Anything but false: outside of the mesh."`
	ServiceAccount string `json:"serviceAccount" doc:"Its service account; it speaks mutual TLS then."`
}

type placeKeys struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	Subzone string `json:"subzone"`
}

// Values of By and Address.
const (
	byVIP         = "vip"
	byApplication = "application"
	atIP          = "ip"
	atHostname    = "hostname"
)

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Servers: []string{"http://127.0.0.1:8761/eureka"}, By: byVIP, Healthy: []string{up}, Host: "{service}.eureka", Address: atIP, Protocol: "HTTP",
		Meta: metaKeys{"weight", "protocol", "external", "service-account"}, Locality: placeKeys{"region", "zone", "subzone"},
		MeshNamespace: "default", Cluster: "Kubernetes", MaxInstances: 100_000, MaxBytes: 128 << 20,
		Interval: 5 * time.Second, Full: 30 * time.Second, DeltaWindow: 2 * time.Minute, Keep: 5 * time.Minute,
		Timeout: 20 * time.Second, MaxRetry: 15 * time.Second,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for _, check := range []func() error{c.checkServers, c.checkAccess, c.checkSelection, c.checkMapping} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// mostServers is how many servers may be listed.
const mostServers = 100

func (c *Config) checkServers() error {
	if len(c.Servers) == 0 || len(c.Servers) > mostServers {
		return strict.Errorf("servers", "there must be one, and at most %d", mostServers)
	}
	for i, s := range c.Servers {
		at := strict.At("servers", i)
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return strict.Errorf(at, "this is no URL, such as http://127.0.0.1:8761/eureka") // what is there may have a password in it
		case u.User != nil:
			return strict.Errorf(at, "a user doesn't belong there: there are username and passwordFile")
		case u.RawQuery != "" || u.Fragment != "":
			return strict.Errorf(at, "a query or a fragment don't belong there")
		case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/apps"):
			return strict.Errorf(at, "leave out /apps at the end: it is added")
		}
		c.Servers[i] = strings.TrimRight(s, "/")
		if slices.Contains(c.Servers[:i], c.Servers[i]) {
			return strict.Errorf(at, "%s is there twice", s)
		}
	}
	for i, r := range c.RemoteRegions {
		if r == "" || strings.ContainsAny(r, ", ") {
			return strict.Errorf(strict.At("remoteRegions", i), "%q is no region's name, such as us-east-1", r)
		}
	}
	return nil
}

// query is what is asked for beside the servers' own region.
func (c *Config) query() string {
	if len(c.RemoteRegions) == 0 {
		return ""
	}
	return "?regions=" + url.QueryEscape(strings.Join(c.RemoteRegions, ","))
}

func (c *Config) checkAccess() error {
	if err := c.Login.Check(); err != nil {
		return err
	}
	secured := slices.ContainsFunc(c.Servers, func(s string) bool { return strings.HasPrefix(s, "https://") })
	switch {
	case c.TLS == nil:
		return nil
	case !hasFiles:
		return strict.Errorf("tls", "a module's calls are made by its runner, which trusts the system's roots and has "+
			"no certificate of its own: run registry/eureka as a process for this")
	case !secured:
		return strict.Errorf("tls", "no server starts with https://")
	}
	return c.TLS.Check("tls")
}

func (c *Config) checkSelection() error {
	for i, h := range c.Healthy {
		if !slices.Contains(statuses, h) {
			return strict.Errorf(strict.At("healthy", i), "%q is no status%s", h, nearest.Suggest(h, statuses))
		}
	}
	if err := c.Applications.Check("applications", "web-*"); err != nil {
		return err
	}
	for _, globs := range [][]string{c.Applications.Include, c.Applications.Exclude} {
		for i, g := range globs {
			globs[i] = strings.ToUpper(g) // Eureka knows no case
		}
	}
	if values := []string{byVIP, byApplication}; !slices.Contains(values, c.By) {
		return strict.Errorf("by", "%q is neither vip nor application%s", c.By, nearest.Suggest(c.By, values))
	}
	if values := []string{atIP, atHostname}; !slices.Contains(values, c.Address) {
		return strict.Errorf("address", "%q is neither ip nor hostname%s", c.Address, nearest.Suggest(c.Address, values))
	}
	return nil
}

func (c *Config) checkMapping() error {
	if host := c.host("web"); host == c.Host || strings.ContainsAny(host, "{}") || !hosts.ValidName(host, false) {
		return strict.Errorf("host", "%q makes no DNS name of each service; write such as {service}.eureka", c.Host)
	}
	if err := instances.CheckProtocol("protocol", &c.Protocol); err != nil {
		return err
	}
	if c.ServicePort != 0 && c.ServicePort == c.SecureServicePort {
		return strict.Errorf("secureServicePort", "%d is servicePort, too", c.ServicePort)
	}
	return instances.CheckNamespace(c.MeshNamespace)
}

// host returns a service's host in the mesh.
func (c *Config) host(service string) string {
	return strings.ToLower(strings.ReplaceAll(c.Host, "{service}", service))
}
