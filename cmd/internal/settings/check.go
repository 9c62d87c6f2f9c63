package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/coxswain-mesh/coxswain/core/traces"
)

// Check returns what can't be, in the words of the flags.
func (s Settings) Check() error {
	return errors.Join(
		s.Inputs.check(), s.Ports.check(), s.secure(), s.Timing.Check(), s.Serving.check(), s.Limits.Check(),
		s.Keepalive.check(), s.History.check(s.FollowPushes), s.History.Rollout.check(s.FollowPushes), s.Log.check(s.FollowPushes),
	)
}

func (i Inputs) check() error {
	errs := []error{i.registry()}
	if i.Plugins != "" && i.Registries != "auto" && i.Registries != "" {
		errs = append(errs, errors.New("registries: it chooses a built-in set, and plugins names another; leave one of them out"))
	}
	if i.QPS <= 0 {
		errs = append(errs, fmt.Errorf("kubernetesApiQPS: %v is not more than 0", i.QPS))
	}
	if i.Burst < 1 {
		errs = append(errs, fmt.Errorf("kubernetesApiBurst: %d is less than 1", i.Burst))
	}
	if i.Remotes.Timeout < 0 {
		errs = append(errs, fmt.Errorf("remoteClusterTimeout: %v is less than 0", i.Remotes.Timeout))
	}
	_, aliases := i.Aliases()
	_, rule := i.Callers.Rule()
	return errors.Join(append(errs, aliases, rule, i.Callers.Signing.check())...)
}

// Aliases returns the clusters that other ids stand for. As with pilot-discovery, a cluster has one
// of them at most.
func (c Cluster) Aliases() (map[string]string, error) {
	out, of := map[string]string{}, map[string]string{}
	if c.ClusterAliases == "" {
		return out, nil
	}
	for pair := range strings.SplitSeq(c.ClusterAliases, ",") {
		alias, cluster, ok := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case !ok || alias == "" || cluster == "":
			return nil, fmt.Errorf("clusterAliases: %q is not ALIAS=CLUSTER", pair)
		case out[alias] != "":
			return nil, fmt.Errorf("clusterAliases: %s stands for %s and for %s", alias, out[alias], cluster)
		case of[cluster] != "":
			return nil, fmt.Errorf("clusterAliases: %s has two aliases, %s and %s; it may have one", cluster, of[cluster], alias)
		}
		out[alias], of[cluster] = cluster, alias
	}
	return out, nil
}

func (p Ports) check() error {
	errs := []error{
		plaintext(p.GRPCAddr),
		address("httpAddr", p.HTTPAddr),
		address("monitoringAddr", p.MonitoringAddr),
		address("secureGRPCAddr", p.SecureGRPCAddr),
		address("httpsAddr", p.HTTPSAddr),
	}
	return errors.Join(errs...)
}

// secure checks what the secure port needs.
func (s Settings) secure() error {
	_, err := s.Suites()
	errs := []error{oneOf("tls-min-version", s.MinVersion, "1.2", "1.3"), err}
	if files := s.CACertFile + s.CertFile + s.KeyFile; files != "" && (s.CACertFile == "" || s.CertFile == "" || s.KeyFile == "") {
		errs = append(errs, errors.New("secureGRPCAddr: TLS needs three files: set tlsCertFile, tlsKeyFile and caCertFile, "+
			"or none of them where a plugin makes the certificate (controller/ca)"))
	}
	return errors.Join(errs...)
}

// Hosts are the secure port's further names.
func (p Ports) Hosts() (names []string) {
	for name := range strings.SplitSeq(p.CustomHost, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Version returns the least TLS version, as crypto/tls has it.
func (t TLS) Version() uint16 {
	if t.MinVersion == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// Suites returns the cipher suites' numbers; those that Go calls insecure are refused.
func (t TLS) Suites() ([]uint16, error) {
	if t.CipherSuites == "" {
		return nil, nil
	}
	known := map[string]uint16{}
	for _, c := range tls.CipherSuites() {
		known[c.Name] = c.ID
	}
	var ids []uint16
	for name := range strings.SplitSeq(t.CipherSuites, ",") {
		id, ok := known[strings.TrimSpace(name)]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			return nil, fmt.Errorf("tls-cipher-suites: %q is none of %v%s", name, names, Hint(name, names))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// leastMemory is what the core needs with hardly anything to serve, and some to serve it.
const leastMemory = 32 << 20

// leastNamespace is what a namespace needs with hardly any objects.
const leastNamespace = 1 << 20

func (s Serving) check() error {
	var errs []error
	if s.PushBytes < 0 {
		errs = append(errs, fmt.Errorf("pushBytes: %d is negative", s.PushBytes))
	}
	if s.ViewRetentionBytes < 0 {
		errs = append(errs, fmt.Errorf("viewRetentionBytes: %d is negative", s.ViewRetentionBytes))
	}
	if s.MemoryLimit != 0 && s.MemoryLimit < leastMemory {
		errs = append(errs, fmt.Errorf("memoryLimit: %d bytes are fewer than the core needs by itself, %d (32 MiB); "+
			"0: what GOMEMLIMIT says, or half of what there is",
			s.MemoryLimit, leastMemory))
	}
	if s.NamespaceBytes != 0 && s.NamespaceBytes < leastNamespace {
		errs = append(errs, fmt.Errorf("maxNamespaceBytes: %d bytes are fewer than a namespace needs with a few "+
			"objects, %d (1 MiB); 0: a quarter of memoryLimit",
			s.NamespaceBytes, leastNamespace))
	}
	if s.PushThrottle < 0 {
		errs = append(errs, fmt.Errorf("pushThrottle: %d is negative", s.PushThrottle))
	}
	return errors.Join(append(errs, notNegative("sendTimeout", s.SendTimeout), notNegative("shutdownDuration", s.ShutdownDuration),
		notNegative("viewRetention", s.ViewRetention))...)
}

func (k Keepalive) check() error {
	return errors.Join(
		atLeast("keepaliveInterval", k.Interval, time.Second),
		atLeast("keepaliveTimeout", k.Timeout, time.Second),
		notNegative("keepaliveMaxServerConnectionAge", k.MaxAge),
		notNegative("keepaliveMaxServerConnectionAgeGrace", k.MaxAgeGrace),
	)
}

func (l Log) check(follow bool) error {
	errs := []error{oneOf("logLevel", l.Level, Levels()...), oneOf("logFormat", l.Format, Formats()...)}
	if l.TraceEndpoint != "" {
		if err := (traces.Config{Endpoint: l.TraceEndpoint, Ratio: l.TraceRatio}).Check(); err != nil {
			errs = append(errs, fmt.Errorf("traceEndpoint, traceRatio: %w", err))
		}
		if !follow {
			errs = append(errs, errors.New("traceEndpoint: traces are of pushes that are followed, and followPushes is false; leave one of them out"))
		}
	}
	return errors.Join(errs...)
}

// Levels returns what logLevel may be.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// Formats returns what logFormat may be.
func Formats() []string { return []string{"text", "json"} }

// nowhere takes `none` for no address wherever an empty one is none; of grpcAddr it is said apart.
func (p *Ports) nowhere() {
	for _, a := range []*string{&p.HTTPAddr, &p.MonitoringAddr, &p.SecureGRPCAddr, &p.HTTPSAddr} {
		if *a == server.None {
			*a = ""
		}
	}
}

// plaintext checks grpcAddr, which may be no address on purpose.
func plaintext(a string) error {
	if a == server.None {
		return nil
	}
	return address("grpcAddr", a)
}

func address(name, a string) error {
	if a == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(a)
	if err != nil {
		return fmt.Errorf("%s: %q is no address; write HOST:PORT, such as 127.0.0.1:15010", name, a)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s: %q has no port number from 0 to 65535", name, a)
	}
	return nil
}

func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v is negative", name, d)
	}
	return nil
}

func atLeast(name string, d, least time.Duration) error {
	if d < least {
		return fmt.Errorf("%s: %v is less than %v", name, d, least)
	}
	return nil
}

func oneOf(name, got string, of ...string) error {
	if !slices.Contains(of, got) {
		return fmt.Errorf("%s: %q is none of %v%s", name, got, of, Hint(got, of))
	}
	return nil
}

func (r Rollout) check(follow bool) error {
	var errs []error
	if _, err := manifest.ParseSelector(r.First); err != nil {
		errs = append(errs, fmt.Errorf("rolloutFirst: %w", err))
	}
	if r.Hold < 0 {
		errs = append(errs, fmt.Errorf("rolloutHold: %s is less than 0", r.Hold))
	}
	if r.MetricInterval < time.Second {
		errs = append(errs, fmt.Errorf("rolloutMetricInterval: %s is less than 1s", r.MetricInterval))
	}
	if (r.MetricURL == "") != (r.MetricQuery == "") {
		errs = append(errs, errors.New("rolloutMetricURL and rolloutMetricQuery: one is of no use without the other"))
	}
	if r.MetricURL != "" {
		switch u, err := url.Parse(r.MetricURL); {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			errs = append(errs, errors.New("rolloutMetricURL: it is no URL of a server, such as http://prometheus:9090"))
		case u.User != nil:
			errs = append(errs, errors.New("rolloutMetricURL: settings are shown to others, so a password has no "+
				"place in it; let a proxy beside the server add it"))
		}
	}
	if r.First != "" && !follow {
		errs = append(errs, errors.New("rolloutFirst: it is not known whom a push has reached while followPushes is false; leave one of them out"))
	}
	if r.First == "" && r.MetricQuery != "" {
		errs = append(errs, errors.New("rolloutMetricQuery: it is asked for nothing without rolloutFirst"))
	}
	return errors.Join(errs...)
}

func (h History) check(follow bool) error {
	var errs []error
	if h.Revisions < 0 {
		errs = append(errs, fmt.Errorf("historyRevisions: %d is less than 0", h.Revisions))
	}
	if h.Bytes < 0 {
		errs = append(errs, fmt.Errorf("historyBytes: %d is less than 0", h.Bytes))
	}
	if h.Revisions > 0 && !follow {
		errs = append(errs, errors.New("followPushes: the history is of pushes that are followed; set historyRevisions to 0, too"))
	}
	if h.StateDir != "" && h.Revisions == 0 {
		errs = append(errs, errors.New("stateDir: nothing is kept there while historyRevisions is 0; leave one of them out"))
	}
	return errors.Join(errs...)
}
