package nacos

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml; the schema says what each field means. server is
// one: the URL of its HTTP API, up to and with the context path, and HOST:PORT of its gRPC.
type server struct{ http, grpc string }

type Config struct {
	secure.Login
	Servers       []string          `json:"servers" min:"1" doc:"HOST:PORT, or https://HOST:PORT, of Nacos' servers: their HTTP port. One is asked; where it fails, the next."`
	GRPCOffset    int               `json:"grpcOffset" doc:"How far a server's gRPC port is from its HTTP port."`
	ContextPath   string            `json:"contextPath" doc:"Where the servers' HTTP API begins."`
	TLS           *secure.TLS       `json:"tls" doc:"Of gRPC, and of logins at https://. An empty object: TLS by the system's roots."`
	Namespaces    []string          `json:"namespaces" min:"1" max:"20" doc:"IDs of namespaces."`
	Groups        []string          `json:"groups" min:"1" max:"20" doc:"Groups in each of them."`
	Services      instances.Names   `json:"services"`
	Clusters      []string          `json:"clusters" doc:"Names or globs of clusters whose instances count; all where there are none."`
	Host          string            `json:"host" doc:"A service's host."`
	ServicePort   uint32            `json:"servicePort" max:"65535" doc:"The port of all services in the mesh, whatever ports their instances have; 0: those of the instances."`
	Protocol      string            `json:"protocol" doc:"What instances speak, where metadata doesn't say; empty: found out by each proxy."`
	Meta          metaKeys          `json:"meta" doc:"Keys of an instance's metadata."`
	Ports         map[string]string `json:"ports" doc:"Keys of an instance's metadata that have the number of a further port, and what is spoken there."`
	Locality      placeKeys         `json:"locality" doc:"Keys of an instance's metadata."`
	Region        string            `json:"region" doc:"The region of instances that have a zone and don't say which region it is in."`
	MeshNamespace string            `json:"meshNamespace" doc:"The namespace that the services are in."`
	Cluster       string            `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	Limits        limits            `json:"limits"`
	Interval      time.Duration     `json:"interval" min:"50ms" max:"1h" doc:"How often the services are listed."`
	Refresh       time.Duration     `json:"refresh" min:"1s" max:"24h" doc:"How often each service is asked for, whatever the server tells by itself."`
	Keep          time.Duration     `json:"keep" max:"24h" doc:"For how long stays what a server has forgotten, and for how long a server that has nothing is not believed at the start."`
	Timeout       time.Duration     `json:"timeout" min:"500ms" max:"1m" doc:"How long an answer may take."`
	MaxRetry      time.Duration     `json:"maxRetry" min:"250ms" max:"1h" doc:"The longest wait after failures."`

	servers []server
}

// metaKeys and placeKeys are keys of an instance's metadata.
type metaKeys struct {
	Protocol       string `json:"protocol"`
	Secure         string `json:"secure" doc:"true: it speaks HTTPS."`
	External       string `json:"external" doc:"Anything but false: outside of the mesh."`
	ServiceAccount string `json:"serviceAccount" doc:"Its service account; it speaks mutual TLS then."`
}

type placeKeys struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	Subzone string `json:"subzone"`
	// Cluster is what the name of an instance's cluster is, too.
	Cluster string `json:"cluster" enum:",region,zone" doc:"What the name of an instance's cluster is, where metadata doesn't say it and it isn't DEFAULT."`
}

type limits struct {
	Services     int `json:"services" min:"1" max:"1000000" doc:"Services that are followed, in each namespace."`
	Instances    int `json:"instances" min:"1" max:"10000000" doc:"Instances of all services."`
	MessageBytes int `json:"messageBytes" min:"1024" max:"1073741824" doc:"The largest message that is taken."`
	Requests     int `json:"requests" min:"1" max:"1000" doc:"Questions at once, of each namespace."`
}

// Values of placeKeys.Cluster.
const (
	clusterIsRegion = "region"
	clusterIsZone   = "zone"
)

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Servers: []string{"127.0.0.1:8848"}, GRPCOffset: 1000, ContextPath: "/nacos",
		Namespaces: []string{"public"}, Groups: []string{"DEFAULT_GROUP"},
		Host: "{service}.{group}.{namespace}.nacos", Protocol: "HTTP",
		Meta:          metaKeys{"protocol", "secure", "external", "service-account"},
		Ports:         map[string]string{"gRPC_port": "GRPC", "gRPC.port": "GRPC"},
		Locality:      placeKeys{Region: "region", Zone: "zone", Subzone: "subzone"},
		MeshNamespace: "default", Cluster: "Kubernetes", Limits: limits{10_000, 100_000, 64 << 20, 16},
		Interval: 5 * time.Second, Refresh: time.Minute, Keep: 30 * time.Second, Timeout: 5 * time.Second, MaxRetry: 15 * time.Second,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for _, check := range []func() error{
		c.checkServers, c.checkAccess, c.checkSelection, c.checkHost, c.checkMapping,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// mostServers is how many servers may be listed, most how many namespaces or groups: each namespace
// has a connection.
const mostServers, most = 100, 20

func (c *Config) checkServers() error {
	if len(c.Servers) == 0 || len(c.Servers) > mostServers {
		return strict.Errorf("servers", "there must be one, and at most %d", mostServers)
	}
	if c.GRPCOffset < -65535 || c.GRPCOffset > 65535 {
		return strict.Errorf("grpcOffset", "%d is not between -65535 and 65535", c.GRPCOffset)
	}
	base := strings.TrimRight(c.ContextPath, "/")
	if base != "" && !strings.HasPrefix(base, "/") || strings.ContainsAny(base, "?#% ") {
		return strict.Errorf("contextPath", "%q is no path such as /nacos", c.ContextPath)
	}
	for i, s := range c.Servers {
		at := strict.At("servers", i)
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			// what is there may have a password in it
			return strict.Errorf(at, "this is no HOST:PORT such as 127.0.0.1:8848, and no URL such as https://nacos.example.com:8848")
		case u.User != nil:
			return strict.Errorf(at, "a user doesn't belong there: there are username and passwordFile")
		case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return strict.Errorf(at, "a path doesn't belong there: there is contextPath")
		}
		port := 8848
		if text := u.Port(); text != "" {
			port, _ = strconv.Atoi(text)
		}
		if port < 1 || port > 65535 || port+c.GRPCOffset < 1 || port+c.GRPCOffset > 65535 {
			return strict.Errorf(at, "port %s, with grpcOffset for gRPC, is not between 1 and 65535", u.Port())
		}
		address := func(port int) string { return net.JoinHostPort(u.Hostname(), strconv.Itoa(port)) }
		one := server{http: u.Scheme + "://" + address(port) + base, grpc: address(port + c.GRPCOffset)}
		if slices.ContainsFunc(c.servers, func(s server) bool { return s.grpc == one.grpc }) {
			return strict.Errorf(at, "%s is there twice", address(port))
		}
		c.servers = append(c.servers, one)
	}
	return nil
}

func (c *Config) checkAccess() error {
	if err := c.Login.Check(); err != nil {
		return err
	}
	if c.Username != "" && c.Password+c.PasswordFile == "" {
		return strict.Errorf("passwordFile", "is required where there is a username")
	}
	return c.TLS.Check("tls")
}

func (c *Config) checkSelection() error {
	for _, list := range []struct {
		name   string
		values []string
	}{{"namespaces", c.Namespaces}, {"groups", c.Groups}} {
		if len(list.values) == 0 || len(list.values) > most {
			return strict.Errorf(list.name, "there must be one, and at most %d", most)
		}
		for i, v := range list.values {
			if v == "" || strings.ContainsAny(v, "/@ ") || len(v) > 128 {
				return strict.Errorf(strict.At(list.name, i), "%q is none; namespaces are named by their IDs, the first one is public", v)
			}
			if slices.Contains(list.values[:i], v) {
				return strict.Errorf(strict.At(list.name, i), "%s is there twice", v)
			}
		}
	}
	if err := c.Services.Check("services", "web-*"); err != nil {
		return err
	}
	return instances.CheckGlobs("clusters", c.Clusters, "web-*")
}

func (c *Config) checkHost() error {
	host, other := c.host(key{"n", "g", "web"}), c.host(key{"n", "g", "other"})
	if host == other || strings.ContainsAny(host, "{}") || !hosts.ValidName(host, false) {
		return strict.Errorf("host", "%q makes no DNS name of each service; write such as {service}.{group}.{namespace}.nacos", c.Host)
	}
	for _, part := range []struct {
		name, list string
		values     []string
	}{{"{namespace}", "namespaces", c.Namespaces}, {"{group}", "groups", c.Groups}} {
		seen := map[string]bool{}
		for i, v := range part.values {
			if i > 0 && !strings.Contains(c.Host, part.name) {
				return strict.Errorf("host", "%q needs %s, since there are several %s: services of the same name would be one", c.Host, part.name, part.list)
			}
			if v = label(v); seen[v] {
				return strict.Errorf(strict.At(part.list, i), "makes the same host as another one: a host has %s for both", v)
			}
			seen[v] = true
		}
	}
	return nil
}

func (c *Config) checkMapping() error {
	if err := instances.CheckProtocol("protocol", &c.Protocol); err != nil {
		return err
	}
	if len(c.Ports) >= instances.MostPorts {
		return strict.Errorf("ports", "there are more than %d", instances.MostPorts-1)
	}
	for name, p := range c.Ports {
		if err := instances.CheckProtocol("ports."+name, &p); err != nil {
			return err
		}
		c.Ports[name] = p
	}
	if values := []string{"", clusterIsRegion, clusterIsZone}; !slices.Contains(values, c.Locality.Cluster) {
		return strict.Errorf("locality.cluster", "%q is neither region nor zone%s", c.Locality.Cluster, nearest.Suggest(c.Locality.Cluster, values[1:]))
	}
	return instances.CheckNamespace(c.MeshNamespace)
}

// host returns a service's host in the mesh.
func (c *Config) host(k key) string {
	return strings.NewReplacer(
		"{service}", strings.ToLower(k.name), "{group}", label(k.group), "{namespace}", label(k.namespace),
	).Replace(c.Host)
}

// label is the part of a host that a namespace or a group is: other programs that know Nacos'
// services write it so.
func label(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
