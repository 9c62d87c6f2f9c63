package settings

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/spf13/pflag"
)

// load runs Load on a command line, an environment and the text of a settings file.
func load(t *testing.T, args, environ []string, file string) (Settings, []string, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		environ = append(environ, "COXSWAIN_SETTINGS="+path)
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	PilotFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(fs, environ)
}

func TestOrder(t *testing.T) {
	file := "debounceAfter: 1s\ndebounceMax: 2s\nholdMax: 3s\nlogLevel: warn\n"
	environ := []string{"COXSWAIN_DEBOUNCE_MAX=20s", "COXSWAIN_HOLD_MAX=30s", "PATH=/bin"}
	s, unknown, err := load(t, []string{"--holdMax=300s", "--debounceEndpoints"}, environ, file)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.DebounceAfter = time.Second
	want.DebounceMax = 20 * time.Second
	want.HoldMax = 300 * time.Second
	want.DebounceEndpoints = true
	want.Level = "warn"
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if len(unknown) > 0 {
		t.Errorf("unknown: %v", unknown)
	}
}

// TestGivenAgain: aliases may be given by one flag or by several, as pilot-discovery takes them.
func TestGivenAgain(t *testing.T) {
	environ := []string{"COXSWAIN_CLUSTER_ALIASES=z=north"}
	s, _, err := load(t, []string{"--clusterAliases", "a=east", "--clusterAliases=b=west, c=south"}, environ, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Aliases()
	if want := map[string]string{"a": "east", "b": "west", "c": "south"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, want %v, %v", got, want, err)
	}
	if s, _, err = load(t, nil, environ, ""); err != nil || s.ClusterAliases != "z=north" {
		t.Errorf("got %q, %v", s.ClusterAliases, err)
	}
}

func TestDefaults(t *testing.T) {
	s, _, err := load(t, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if s != Defaults() {
		t.Errorf("got %+v", s)
	}
}

func TestEmptyAddresses(t *testing.T) {
	s, _, err := load(t, []string{"--httpAddr="}, []string{"COXSWAIN_MONITORING_ADDR="}, "grpcAddr: ''\nsecureGRPCAddr: ''\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.Ports != (Ports{}) {
		t.Errorf("got %+v", s.Ports)
	}
}

func TestNoPlaintext(t *testing.T) {
	s, _, err := load(t, []string{"--grpcAddr=none"}, nil, "")
	if err != nil || s.GRPCAddr != server.None {
		t.Errorf("%v, %q", err, s.GRPCAddr)
	}
}

// TestNone: none is no address wherever an empty one is.
func TestNone(t *testing.T) {
	s, _, err := load(t, []string{"--httpAddr=none", "--monitoringAddr=none", "--secureGRPCAddr=none", "--httpsAddr=none", "--grpcAddr=127.0.0.1:1"}, nil, "")
	if err != nil || s.HTTPAddr+s.MonitoringAddr+s.SecureGRPCAddr+s.HTTPSAddr != "" || s.Webhooks {
		t.Errorf("%v, %+v", err, s.Ports)
	}
}

func TestUnknownVariables(t *testing.T) {
	environ := []string{"COXSWAIN_HOLDMAX=1s", "COXSWAIN_SERVICE_HOST=10.0.0.1", "COXSWAIN_PORT_15010_TCP=x", "COXSWAIN_ADDR=a"}
	_, unknown, err := load(t, nil, environ, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"COXSWAIN_HOLDMAX"}; !reflect.DeepEqual(unknown, want) {
		t.Errorf("got %v, want %v", unknown, want)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		file    string
		want    string
	}{
		{name: "key", file: "a:\n", want: `settings.yaml:1:1: unknown setting "a"`},
		{name: "nearest key", file: "\ndebounceafter: 1s\n", want: `settings.yaml:2:1: unknown setting "debounceafter", did you mean "debounceAfter"?`},
		{name: "two keys", file: "x1: 1\ny2: 1\n", want: `settings.yaml:2:1: unknown setting "y2"`},
		{name: "no mapping", file: "- 1\n", want: "settings.yaml:1:1: want a mapping"},
		{name: "no YAML", file: "a: [\n", want: "settings.yaml: yaml: line"},
		{name: "no file", args: []string{"--settings=/nonexistent"}, want: "no such file"},
		{name: "no duration", environ: []string{"COXSWAIN_HOLD_MAX=5"}, want: `$COXSWAIN_HOLD_MAX: holdMax: "5" is not a time with a unit, such as 100ms`},
		{name: "no unit", file: "logLevel: info\nholdMax: 5\n", want: `settings.yaml:2:10: holdMax: "5" is not a time with a unit`},
		{name: "no number", file: "maxRequestsPerSecond: fast\n", want: `settings.yaml:1:23: maxRequestsPerSecond: "fast" is not a number`},
		{name: "no truth", environ: []string{"COXSWAIN_DEV=maybe"}, want: `$COXSWAIN_DEV: dev: "maybe" is not true or false`},
		{name: "a list", file: "holdMax: [1s]\n", want: "settings.yaml:1:10: holdMax: want one value, not a list or a mapping"},
		{name: "place of a check in a file", file: "holdMax: 0s\n", want: "settings.yaml:1:10: holdMax: 0s must be more than 0"},
		{name: "place of a check in a variable", environ: []string{"COXSWAIN_LOG_LEVEL=loud"}, file: "logLevel: info\n", want: `$COXSWAIN_LOG_LEVEL: logLevel: "loud" is none of`},
		{name: "place of the second fault", file: "holdMax: 0s\ndebounceAfter: 0s\n", want: "settings.yaml:2:16: debounceAfter: 0s must be more than 0"},
		{name: "TLS", args: []string{"--tlsCertFile=cert.pem"}, want: "secureGRPCAddr: TLS needs three files"},
		{name: "TLS version", args: []string{"--tls-min-version=1.1"}, want: `tls-min-version: "1.1" is none of [1.2 1.3]`},
		{name: "suites", environ: []string{"COXSWAIN_TLS_CIPHER_SUITES=TLS_RSA_WITH_RC4_128_SHA"}, want: `tls-cipher-suites: "TLS_RSA_WITH_RC4_128_SHA" is none of`},
		{name: "webhooks", args: []string{"--httpsAddr=1"}, want: "httpsAddr"},
		{name: "address", args: []string{"--grpcAddr=15010"}, want: `grpcAddr: "15010" is no address`},
		{name: "no address", args: []string{"--httpAddr=nowhere"}, want: `httpAddr: "nowhere" is no address`},
		{name: "port", args: []string{"--grpcAddr=:http"}, want: "no port number"},
		{name: "negative", args: []string{"--keepaliveMaxServerConnectionAge=-1s"}, want: "keepaliveMaxServerConnectionAge: -1s is negative"},
		{name: "debounce", args: []string{"--debounceMax=1ms"}, want: "debounceMax: 1ms is less than debounceAfter"},
		{name: "first of nobody", args: []string{"--rolloutFirst", "canary"}, want: `rolloutFirst: "canary" is not KEY=PATTERN`},
		{name: "stages unfollowed", args: []string{"--rolloutFirst", "id=a", "--followPushes=false", "--historyRevisions", "0"}, want: "rolloutFirst: it is not known whom a push has reached"},
		{name: "metric of none", args: []string{"--rolloutMetricURL", "http://a", "--rolloutMetricQuery", "up"}, want: "rolloutMetricQuery: it is asked for nothing without rolloutFirst"},
		{name: "metric without server", args: []string{"--rolloutFirst", "id=a", "--rolloutMetricQuery", "up"}, want: "rolloutMetricURL and rolloutMetricQuery: one is of no use without the other"},
		{name: "metric of no server", args: []string{"--rolloutFirst", "id=a", "--rolloutMetricQuery", "up", "--rolloutMetricURL", "prometheus:9090"}, want: "rolloutMetricURL: it is no URL of a server"},
		{name: "metric by a password", args: []string{"--rolloutFirst", "id=a", "--rolloutMetricQuery", "up", "--rolloutMetricURL", "http://me:secret@prometheus"}, want: "rolloutMetricURL: settings are shown to others"},
		{name: "metric at once", args: []string{"--rolloutMetricInterval", "1ms"}, want: "rolloutMetricInterval: 1ms is less than 1s"},
		{name: "hold of less", args: []string{"--rolloutHold", "-1s"}, want: "rolloutHold: -1s is less than 0"},
		{name: "history of pushes", args: []string{"--followPushes=false"}, want: "followPushes: the history is of pushes that are followed; set historyRevisions to 0, too"},
		{name: "no alias", environ: []string{"COXSWAIN_CLUSTER_ALIASES=a=b,c"}, want: `$COXSWAIN_CLUSTER_ALIASES: clusterAliases: "c" is not ALIAS=CLUSTER`},
		{name: "two aliases", args: []string{"--clusterAliases=a=b,c=b"}, want: "clusterAliases: b has two aliases, a and c; it may have one"},
		{name: "an alias of two", args: []string{"--clusterAliases=a=b,a=c"}, want: "clusterAliases: a stands for b and for c"},
		{name: "zero", args: []string{"--holdMax=0s"}, want: "holdMax: 0s must be more than 0"},
		{name: "level", args: []string{"--logLevel=wran"}, want: `logLevel: "wran" is none of [debug info warn error], did you mean "warn"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := load(t, c.args, c.environ, c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestPathsOfAFile shows that paths in a file are relative to it, and others to where one stands.
func TestPathsOfAFile(t *testing.T) {
	s, _, err := load(t, []string{"--networksConfig=n.yaml"}, []string{"COXSWAIN_MESH_CONFIG=m.yaml"}, "configDir: config\nplugins: /p.yaml\nmeshConfig: lost\n")
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.ConfigDir) || filepath.Base(s.ConfigDir) != "config" {
		t.Errorf("configDir %q is not beside the file", s.ConfigDir)
	}
	if s.Plugins != "/p.yaml" || s.MeshConfig != "m.yaml" || s.NetworksConfig != "n.yaml" {
		t.Errorf("%+v", s.Inputs)
	}
}

func TestVariable(t *testing.T) {
	for name, want := range map[string]string{
		"plugins": "COXSWAIN_PLUGINS", "grpcAddr": "COXSWAIN_GRPC_ADDR", "secureGRPCAddr": "COXSWAIN_SECURE_GRPC_ADDR",
		"tls-min-version":                 "COXSWAIN_TLS_MIN_VERSION",
		"keepaliveMaxServerConnectionAge": "COXSWAIN_KEEPALIVE_MAX_SERVER_CONNECTION_AGE",
	} {
		if got := Variable(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestIgnored(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	PilotFlags(fs)
	if err := fs.Parse([]string{"--ctrlz_port", "1", "--profile", "--log_target", "stdout", "--cniNamespace", "kube-system", "--holdMax=1s"}); err != nil {
		t.Fatal(err)
	}
	if got := Ignored(fs); len(got) != 3 || !strings.Contains(got[0], "--ctrlz_port") || !strings.Contains(got[0], "coxswain log") {
		t.Errorf("got %q", got)
	}
	for name := range instead {
		if f := fs.Lookup(name); f == nil || !f.Hidden {
			t.Errorf("%s is no flag that has no effect", name)
		}
	}
}

func TestElsewhere(t *testing.T) {
	s := Defaults()
	s.Revision = "blue"
	if got := s.Elsewhere([]string{"CLUSTER_ID=Kubernetes", "REVISION=blue", "POD_NAMESPACE=istio-system", "SHARED_MESH_CONFIG=", "ISTIO_DUAL_STACK=0"}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	got := s.Elsewhere([]string{"CLUSTER_ID=east", "REVISION=default", "POD_NAMESPACE=ops", "SHARED_MESH_CONFIG=all", "ISTIO_DUAL_STACK=1"})
	if len(got) != 5 || !strings.Contains(got[0], `it says "east", and --clusterID (COXSWAIN_CLUSTER_ID) is "Kubernetes"`) {
		t.Errorf("got %q", got)
	}
	s.Revision = ""
	if got := s.Elsewhere([]string{"REVISION=default"}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// TestElsewhereInWords: what is said of a variable is a sentence, whatever comes of it here.
func TestElsewhereInWords(t *testing.T) {
	for variable, want := range map[string]string{
		"ENABLE_MCS_AUTO_EXPORT=true":              `it says "true": for that, add controller/exports in plugins.yaml`,
		"PILOT_ENABLE_IP_AUTOALLOCATE=false":       `it says "false": for that, leave out controller/addresses in plugins.yaml`,
		"MAX_WORKLOAD_CERT_TTL=1h":                 `it says "1h": for that, set maxTTL of controller/ca in plugins.yaml`,
		"CLUSTER_ID=east":                          `it says "east", and --clusterID (COXSWAIN_CLUSTER_ID) is "Kubernetes"`,
		"ENABLE_DEBUG_ON_HTTP=false":               `it says "false", and here it is always as if it said "true"`,
		"DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES=a": `it says "a", and here it is always as without it`,
		"PILOT_ENABLE_AMBIENT=true":                `it says "true", and ambient is not served`,
	} {
		name, _, _ := strings.Cut(variable, "=")
		want = name + " is a variable of istiod's, which isn't read here; " + want
		if got := Defaults().Elsewhere([]string{variable}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, not %q", variable, got, want)
		}
	}
}

// TestReadOnlyWebhooks: with readOnly, wherever it is said, there is no port for webhooks: nobody
// could answer.
func TestReadOnlyWebhooks(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"--httpsAddr=:15017"}, true},
		{[]string{"--httpsAddr=:15017", "--readOnly"}, false},
		{[]string{"--istiodDefaults", "--httpsAddr=:15017", "--readOnly"}, false},
		{nil, false},
	} {
		s, _, err := load(t, c.args, nil, "")
		if err != nil || s.Webhooks != c.want {
			t.Errorf("%v: %v, %v", c.args, s.Webhooks, err)
		}
	}
}

// TestIstiodDefaults: what nobody says is as in istiod's pod, but for plain text.
func TestIstiodDefaults(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		file          string
		want          Ports
	}{
		{nil, nil, "", Ports{GRPCAddr: "127.0.0.1:15010", SecureGRPCAddr: "127.0.0.1:15012", HTTPAddr: "127.0.0.1:8080", MonitoringAddr: "127.0.0.1:15014"}},
		{[]string{"--istiodDefaults"}, nil, "", Ports{IstiodDefaults: true, GRPCAddr: "none", SecureGRPCAddr: ":15012", HTTPAddr: ":8080", MonitoringAddr: ":15014"}},
		{
			[]string{"--grpcAddr", ":15010"}, []string{"COXSWAIN_ISTIOD_DEFAULTS=true", "COXSWAIN_HTTP_ADDR=127.0.0.1:8081"}, "monitoringAddr: 127.0.0.1:9090\n",
			Ports{IstiodDefaults: true, GRPCAddr: ":15010", SecureGRPCAddr: ":15012", HTTPAddr: "127.0.0.1:8081", MonitoringAddr: "127.0.0.1:9090"},
		},
	} {
		s, _, err := load(t, c.args, c.environ, c.file)
		if err != nil || s.Ports != c.want {
			t.Errorf("%v %v: %+v, %v, want %+v", c.args, c.environ, s.Ports, err, c.want)
		}
	}
}

// TestEverythingElsewhere: each variable of istiod's is read, or says something where it says
// something else than is done here.
func TestEverythingElsewhere(t *testing.T) {
	s := Defaults()
	for _, v := range istiodVariables {
		got := s.Elsewhere([]string{v.name + "=something-else"})
		switch {
		case v.fate == isRead:
			if theirs[v.name] == "" || len(got) > 0 {
				t.Errorf("%s is not read: %q", v.name, got)
			}
		case len(got) != 1 || !strings.Contains(got[0], v.name):
			t.Errorf("%s: %q", v.name, got)
		}
		if v.fate == hasSetting && Variable(v.note) == "" {
			t.Errorf("%s: no setting %s", v.name, v.note)
		}
		if v.fate != isMoot && v.fate != isRead && v.is != "" {
			if got := s.Elsewhere([]string{v.name + "=" + v.is}); len(got) > 0 {
				t.Errorf("%s says what is done, and is warned of: %q", v.name, got)
			}
		}
	}
	for name := range theirs {
		if !slices.ContainsFunc(istiodVariables, func(v istiodVariable) bool { return v.name == name }) {
			t.Errorf("%s is read, and not in the table", name)
		}
	}
	for _, equal := range []string{"PILOT_DEBOUNCE_AFTER=0.1s", "PILOT_TRACE_SAMPLING=1", "PILOT_HTTP10=0", "PILOT_ENABLE_AMBIENT=F"} {
		if got := s.Elsewhere([]string{equal}); len(got) > 0 {
			t.Errorf("%s: %q", equal, got)
		}
	}
}

// registered finds where Istio's sources name a variable of the environment.
var registered = regexp.MustCompile(`\b(?:env\.Register|register)\w*(?:\[[^\]]*\])?\(\s*(?://[^\n]*\s*)?"([A-Z][A-Z0-9_]+)"`)

// TestVariablesOfIstiod: the table has each variable that the istiod which is compared with reads.
func TestVariablesOfIstiod(t *testing.T) {
	need.All(t)
	list := exec.Command("go", "list", "-deps", "-f", "{{.Dir}}", "istio.io/istio/pilot/cmd/pilot-discovery")
	list.Dir = "../../../test/peer"
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	known, found := map[string]bool{}, 0
	for _, v := range istiodVariables {
		known[v.name] = true
	}
	for dir := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(dir, "istio.io/istio") || strings.Contains(dir, "pilot-agent") || strings.Contains(dir, "istio-iptables") {
			continue
		}
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range registered.FindAllStringSubmatch(string(text), -1) {
				found++
				if !known[m[1]] && !nobodysSetting[m[1]] {
					t.Errorf("%s is a variable of istiod's: say in istiod_variables.go what comes of it (%s)", m[1], file)
				}
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d variables were found", found)
	}
}

// nobodysSetting are variables that platforms set, and nobody to tell istiod something.
var nobodysSetting = map[string]bool{"KUBERNETES_SERVICE_HOST": true, "K_REVISION": true, "PLATFORM": true, "UNSAFE_PILOT_ENABLE_RUNTIME_ASSERTIONS": true}

// TestCallers: whose credentials count is read from istiod's variables, too, unless ours say
// otherwise.
func TestCallers(t *testing.T) {
	const theirs = `{"issuer": "https://a.example", "jwks_uri": "https://a.example/k", "audiences": ["istio-ca"]}`
	s, unknown, err := load(t, nil, []string{"JWT_RULE=" + theirs, "TOKEN_AUDIENCES=istio-ca,mesh", "TRUSTED_GATEWAY_CIDR=10.0.0.0/8, fd00::/8"}, "")
	if err != nil || len(unknown) > 0 {
		t.Fatal(err, unknown)
	}
	if !slices.Equal(s.Callers.Audiences(), []string{"istio-ca", "mesh"}) || !slices.Equal(s.Callers.Gateways(), []string{"10.0.0.0/8", "fd00::/8"}) {
		t.Errorf("%+v", s.Callers)
	}
	rule, err := s.Callers.Rule()
	if err != nil || rule.Issuer != "https://a.example" || rule.JwksUri != "https://a.example/k" || !slices.Equal(rule.Audiences, []string{"istio-ca"}) {
		t.Errorf("%v, %v", rule, err)
	}
	ours := strings.ReplaceAll(theirs, "a.example", "b.example")
	if s, _, err = load(t, nil, []string{"JWT_RULE=" + theirs, "COXSWAIN_JWT_RULE=" + ours}, ""); err != nil || s.Callers.JWTRule != ours {
		t.Error(s.Callers.JWTRule, err)
	}
	for _, wrong := range []string{"x", `{"isuer": "a"}`, `{"issuer": "a"}`, `{"audiences": ["a"]}`} {
		if _, _, err := load(t, []string{"--jwtRule", wrong}, nil, ""); err == nil || !strings.Contains(err.Error(), "jwtRule: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
