package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// TestSets: which set runs, and where settings go in it.
func TestSets(t *testing.T) {
	const remote = ` registry/kubernetes{"cluster":{"row":"id"},"hash":{"row":"hash"},"remote":{"row":"from"}}`
	revised := func(revision string) string {
		r := `"revision":"` + revision + `"`
		return "registry/kubernetes{" + r + "}" + strings.Replace(remote, `"from"}}`, `"from"},`+r+"}", 1)
	}
	theirs := strings.Replace(remote, `"hash"},`, `"hash"},"kubeconfig":"/k","qps":7,`, 1)
	for _, c := range []struct {
		name  string
		pod   bool
		give  func(*settings.Inputs)
		want  string // builtins with their configs
		error string
	}{
		{"files", false, func(*settings.Inputs) {}, "config/file config/mesh", ""},
		{"a pod", true, func(*settings.Inputs) {}, "config/kubernetes registry/kubernetes" + remote + ` config/mesh{"configMap":"istio"}`, ""},
		{"files in a pod", true, func(in *settings.Inputs) { in.ConfigDir = "/d" }, `config/file{"dir":"/d"} config/mesh`, ""},
		{"no registry in a pod", true, func(in *settings.Inputs) { in.Registries = "" }, "config/file config/mesh", ""},
		{"asked for", false, func(in *settings.Inputs) { in.Registries, in.Revision = "Kubernetes", "blue" },
			`config/kubernetes{"revision":"blue"} ` + revised("blue") + ` config/mesh{"configMap":"istio-blue"}`, ""},
		{"kubeconfig", false, func(in *settings.Inputs) { in.Kubeconfig, in.ClusterID, in.QPS = "/k", "east", 7 },
			`config/kubernetes{"kubeconfig":"/k","qps":7} registry/kubernetes{"cluster":"east","kubeconfig":"/k","qps":7}` + theirs +
				` config/mesh{"configMap":"istio","kubeconfig":"/k","qps":7}`, ""},
		{"files beside services", false, func(in *settings.Inputs) { in.Kubeconfig, in.ConfigDir, in.Revision = "/k", "/d", "blue" },
			`config/file{"dir":"/d"} registry/kubernetes{"kubeconfig":"/k","revision":"blue"}` +
				strings.Replace(strings.Replace(theirs, `,"qps":7`, "", 1), `"from"}}`, `"from"},"revision":"blue"}`, 1) +
				` config/mesh{"configMap":"istio-blue","kubeconfig":"/k"}`, ""},
		{"mesh", true, func(in *settings.Inputs) { in.Revision, in.MeshConfig = "default", "/m" },
			`config/kubernetes{"revision":"default"} ` + revised("default") + ` config/mesh{"configMap":"istio","meshConfig":"/m"}`, ""},
		{"another namespace", true, func(in *settings.Inputs) {
			in.Namespace, in.SharedMeshConfig, in.Remotes.Namespace = "ops", "all", "far"
		},
			`config/kubernetes registry/kubernetes{"systemNamespace":"ops"} registry/kubernetes{"cluster":{"row":"id"},` +
				`"hash":{"row":"hash"},"remote":{"row":"from"},"systemNamespace":"ops"}` +
				` config/mesh{"configMap":"istio","namespace":"ops","sharedConfigMap":"all"}`, ""},
		{"another namespace of files", false, func(in *settings.Inputs) { in.Namespace = "ops" }, "config/file config/mesh", ""},
		{"no cluster", false, func(in *settings.Inputs) { in.Registries, in.Kubeconfig = "", "/k" }, "", "--kubeconfig has no one to go to"},
		{"aliases", false, func(in *settings.Inputs) { in.ClusterAliases = "old=east, older=west" }, `config/file ` +
			`config/mesh generator/istio{"clusterAliases":{"old":"east","older":"west"}} ` +
			`generator/grpc{"clusterAliases":{"old":"east","older":"west"}} ` +
			`generator/sds{"clusterAliases":{"old":"east","older":"west"}}`, ""},
		{"Consul", true, func(in *settings.Inputs) { in.Registries = "Consul" }, "config/file config/mesh registry/consul", ""},
		{"Consul elsewhere", false, func(in *settings.Inputs) {
			in.Registries, in.ConsulServerURL, in.ConfigDir = "Consul", "https://c", "/d"
		},
			`config/file{"dir":"/d"} config/mesh registry/consul{"address":"https://c"}`, ""},
		{"Eureka elsewhere", false, func(in *settings.Inputs) { in.Registries, in.EurekaServerURL = "Eureka", "https://e/eureka" },
			`config/file config/mesh registry/eureka{"servers":["https://e/eureka"]}`, ""},
		{
			"no Consul", false, func(in *settings.Inputs) { in.ConsulServerURL = "http://c" }, "",
			"--consulserverURL has no one to go to: no plugin is `builtin: registry/consul`",
		},
		{"nobody", false, func(in *settings.Inputs) { in.Domain = "east" }, "", "--domain has no one to go to: no plugin is `builtin: registry/kubernetes`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := settings.Defaults().Inputs
			in.Webhooks = true // else those that read a cluster's objects are told that there are none
			c.give(&in)
			name, text, err := setText(in, c.pod)
			if err != nil {
				t.Fatal(err)
			}
			s, err := set(in, name, text)
			if c.error != "" || err != nil {
				if err == nil || !strings.Contains(err.Error(), c.error) || c.error == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if s.Dir() != "." {
				t.Errorf("plugins would start in %s", s.Dir())
			}
			if got := readers(s); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRegistries: each registry that is built in, however its name is written, is in a set, or the
// error has an entry that can be used as it stands.
func TestRegistries(t *testing.T) {
	for builtin := range builtins() {
		kind, name, _ := strings.Cut(builtin, "/")
		// those of Kubernetes, of Istio's resources, and of tests
		if kind != "registry" || slices.Contains([]string{"clusters", "kubernetes", "mcs", "memory", "serviceentry"}, name) {
			continue
		}
		for _, written := range []string{name, strings.ToUpper(name), "Kubernetes," + name} {
			s := settings.Defaults()
			s.Registries = written
			err := s.Check()
			if err == nil {
				t.Errorf("%s is taken, and is in no set", written)
				continue
			}
			if strings.Contains(err.Error(), "did you mean ") {
				s.Registries = regexp.MustCompile(`did you mean "(.*)"`).FindStringSubmatch(err.Error())[1]
				_, text, failed := setText(s.Inputs, false)
				if err := errors.Join(s.Check(), failed); err != nil || !strings.Contains(string(text), "builtin: "+builtin) {
					t.Errorf("%s is said to be %s, which is no set with it (%v)", written, s.Registries, err)
				}
				continue
			}
			_, entries, ok := strings.Cut(err.Error(), "FILE:\n")
			text := string(coxswain.DefaultSet()) + "\n" + entries + "\n"
			set, failed := set(settings.Inputs{ConfigDir: "."}, "plugins.yaml", []byte(text))
			if !ok || failed != nil {
				t.Errorf("%s: %v (%v)", written, err, failed)
				continue
			}
			if e, _ := set.Get(name); e == nil || e.Builtin != builtin {
				t.Errorf("%s: no entry in %v", written, err)
			}
			for _, m := range host.Validate(set, host.Validation{Builtins: known()}) {
				t.Errorf("%s: %v in\n%s", written, m, text)
			}
		}
	}
}

// TestSettingsOfClusters: what is true of the local cluster goes not to those that rows name, what
// is true of all goes to them, too.
func TestSettingsOfClusters(t *testing.T) {
	const text = `plugins:
  - {name: a, kind: registry, builtin: registry/kubernetes}
  - {name: b, kind: registry, builtin: registry/kubernetes, forEach: {table: clusters}, config: {cluster: {row: id}}}
  - {name: c, kind: registry, builtin: registry/clusters}
  - {name: d, kind: registry, builtin: registry/memory, forEach: {table: others, wait: 3s}}`
	in := settings.Defaults().Inputs
	in.ClusterID, in.Domain, in.Burst, in.Remotes.Timeout = "west", "d", 9, time.Minute
	s, err := set(in, "plugins.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": `{"burst":9,"cluster":"west","domain":"d"}`, "b": `{"burst":9,"cluster":{"row":"id"},"domain":"d"}`, "c": `{"burst":9,"cluster":"west"}`, "d": "",
	}
	for name, config := range want {
		if e, _ := s.Get(name); string(e.Config) != config {
			t.Errorf("%s: %s, not %s", name, e.Config, config)
		}
	}
	for name, wait := range map[string]time.Duration{"b": time.Minute, "d": 3 * time.Second} {
		if e, _ := s.Get(name); e.ForEach.Wait != wait {
			t.Errorf("%s is waited for %v", name, e.ForEach.Wait)
		}
	}
}

// readers are the plugins that read files and clusters, and generator/istio if it knows aliases of
// them.
func readers(s *manifest.Set) string {
	var all []string
	for _, b := range []string{"config/file", "config/kubernetes", "registry/kubernetes", "config/mesh", "registry/consul", "registry/eureka"} {
		for _, e := range s.Builtins(b) {
			all = append(all, b+string(e.Config))
		}
	}
	for _, b := range []string{"generator/istio", "generator/grpc", "generator/sds"} {
		for _, e := range s.Builtins(b) {
			if strings.Contains(string(e.Config), "clusterAliases") {
				all = append(all, b+string(e.Config))
			}
		}
	}
	return strings.Join(all, " ")
}

// TestTrust: settings that say whom other trust domains are believed by enable config/spiffe in a
// built-in set.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		endpoints string
		multi     bool
		runs      bool
		config    string
	}{
		{"", false, false, ""},
		{"", true, true, `{"endpoints":[]}`},
		{"a.example|https://a.example/b||b.example|https://b.example", false, true,
			`{"endpoints":[{"trustDomain":"a.example","url":"https://a.example/b"},{"trustDomain":"b.example","url":"https://b.example"}]}`},
	} {
		in := settings.Defaults().Inputs
		in.Callers.Signing.BundleEndpoints, in.Callers.Signing.MultiRoot = c.endpoints, c.multi
		for _, text := range [][]byte{coxswain.DefaultSet(), coxswain.KubernetesSet()} {
			s, err := set(in, "plugins.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			if e := s.Builtins("config/spiffe")[0]; e.Runs() != c.runs || string(e.Config) != c.config {
				t.Errorf("%q, %v: runs %v with %s", c.endpoints, c.multi, e.Runs(), e.Config)
			}
		}
	}
	in := settings.Defaults().Inputs
	in.Callers.Signing.BundleEndpoints = "a.example"
	if _, err := set(in, "plugins.yaml", coxswain.DefaultSet()); err == nil || !strings.Contains(err.Error(), `"a.example" is no DOMAIN|URL`) {
		t.Error(err)
	}
}

// TestCallers: settings that say whose credentials count enable what a built-in set has for them; a
// set of one's own says itself what runs.
func TestCallers(t *testing.T) {
	in := settings.Defaults().Inputs
	runs := func(in settings.Inputs, text []byte) (string, bool) {
		t.Helper()
		s, err := set(in, "plugins.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Builtins("authenticator/jwt")[0]
		return string(e.Config), e.Runs()
	}
	for _, text := range [][]byte{coxswain.DefaultSet(), coxswain.KubernetesSet()} {
		if _, is := runs(in, text); is {
			t.Error("authenticator/jwt runs though nobody says whose tokens count")
		}
	}
	in.Callers.JWTRule = `{"issuer": "https://a.example", "jwks_uri": "https://a.example/k", "audiences": ["istio-ca"]}`
	const want = `{"issuers":[{"audiences":["istio-ca"],"issuer":"https://a.example","jwksUri":"https://a.example/k"}]}`
	for _, text := range [][]byte{coxswain.DefaultSet(), coxswain.KubernetesSet()} {
		if config, is := runs(in, text); !is || config != want {
			t.Errorf("authenticator/jwt runs: %v, with %s", is, config)
		}
	}
	gateways := in
	gateways.Callers.TrustedGatewayCIDR = "10.0.0.0/8,fd00::/8"
	for _, text := range [][]byte{coxswain.DefaultSet(), coxswain.KubernetesSet()} {
		s, err := set(gateways, "plugins.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		if e := s.Builtins("authenticator/xfcc")[0]; !e.Runs() || string(e.Config) != `{"trustedCIDRs":["10.0.0.0/8","fd00::/8"]}` {
			t.Errorf("authenticator/xfcc runs: %v, with %s", e.Runs(), e.Config)
		}
		var order []string
		for _, e := range s.Plugins {
			if name, ok := strings.CutPrefix(e.Builtin, "authenticator/"); ok {
				order = append(order, name)
			}
		}
		want := []string{"certificate", "jwt", "kubernetes", "xfcc"}
		if text := string(text); !strings.Contains(text, "authenticator/kubernetes") {
			want = slices.Delete(want, 2, 3)
		}
		if !slices.Equal(order, want) {
			t.Errorf("authenticators are asked in the order %v, not %v", order, want)
		}
	}
	audiences := in
	audiences.Callers.TokenAudiences = "istio-ca, mesh"
	s, err := set(audiences, "plugins.yaml", coxswain.KubernetesSet())
	if err != nil || string(s.Builtins("authenticator/kubernetes")[0].Config) != `{"audiences":["istio-ca","mesh"]}` {
		t.Errorf("%v", err)
	}
	if _, err := set(audiences, "plugins.yaml", coxswain.DefaultSet()); err == nil || !strings.Contains(err.Error(), "--tokenAudiences has no one to go to") {
		t.Errorf("audiences of tokens that nobody checks: %v", err)
	}
	in.Plugins = "own.yaml"
	if config, is := runs(in, coxswain.DefaultSet()); is || config != want {
		t.Errorf("a set of one's own disables it, and it runs: %v, with %s", is, config)
	}
}

// TestTrial: what runs beside another control plane has no controllers, and with a directory
// nothing else that configures proxies.
func TestTrial(t *testing.T) {
	own := []byte(`plugins:
- {name: branch, kind: config, builtin: config/git, config: {repository: https://git.example/x.git, branch: main}}
- {name: consul, kind: registry, builtin: registry/consul}
- {name: istio, kind: generator, builtin: generator/istio}
- {name: mine, kind: controller, process: {command: ./mine}, insecure: true}
`)
	for _, c := range []struct {
		name string
		text []byte
		dir  string
		want map[string]bool
	}{
		{kubernetesSet, coxswain.KubernetesSet(), "/x", map[string]bool{"config/file": true, "registry/kubernetes": true, "config/kubernetes": false}},
		{"plugins.yaml", own, "/x", map[string]bool{"config/file": true, "registry/consul": true, "config/git": false}},
		{"plugins.yaml", own, "", map[string]bool{"config/file": false, "config/git": true}},
	} {
		s, err := trialSet(settings.Inputs{ConfigDir: c.dir}, c.name, c.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Plugins {
			if e.Kind == "controller" {
				t.Errorf("%s: controller %s runs", c.name, e.Name)
			}
		}
		for builtin, want := range c.want {
			if got := len(s.Builtins(builtin)) > 0; got != want {
				t.Errorf("%s with directory %q: %s is there: %v", c.name, c.dir, builtin, got)
			}
		}
	}
}

// TestWhatWrites: what deploys gateways, and what registers agents, run where settings ask for it,
// and a set without it says so.
func TestWhatWrites(t *testing.T) {
	for builtin, ask := range map[string]func(*settings.Inputs, bool){
		"controller/gateway":      func(in *settings.Inputs, on bool) { in.ManageGateways = on },
		"controller/registration": func(in *settings.Inputs, on bool) { in.AutoRegistration = on },
		"controller/untaint":      func(in *settings.Inputs, on bool) { in.Untaint.Nodes = on },
		"controller/analysis":     func(in *settings.Inputs, on bool) { in.Analysis = on },
	} {
		in := settings.Defaults().Inputs
		for _, on := range []bool{false, true} {
			ask(&in, on)
			s, err := set(in, kubernetesSet, coxswain.KubernetesSet())
			if err != nil {
				t.Fatal(err)
			}
			if all := s.Builtins(builtin); len(all) != 1 || all[0].Runs() != on {
				t.Errorf("%s, %v: %v", builtin, on, all)
			}
		}
		if _, err := set(in, "own.yaml", []byte("plugins: [{name: files, kind: config, builtin: config/file}]\n")); err == nil ||
			!strings.Contains(err.Error(), "builtin: "+builtin) {
			t.Errorf("a set without it: %v", err)
		}
	}
}

// TestDNSAddr: a setting has the sets' controller/dns answer there, whether or not something may be
// written, and one that is no address is refused.
func TestDNSAddr(t *testing.T) {
	for name, text := range map[string][]byte{kubernetesSet: coxswain.KubernetesSet(), "plugins.yaml (built in)": coxswain.DefaultSet()} {
		for _, only := range []bool{false, true} {
			in := settings.Defaults().Inputs
			in.ReadOnly, in.DNSAddr = only, "127.0.0.1:15053"
			s, err := set(in, name, text)
			if err != nil {
				t.Fatal(err)
			}
			if all := s.Builtins("controller/dns"); len(all) != 1 || !all[0].Runs() ||
				fmt.Sprint(all[0].Listen) != "[udp://127.0.0.1:15053 tcp://127.0.0.1:15053]" {
				t.Errorf("%s, readOnly %v: %v", name, only, all)
			}
			in.DNSAddr = ""
			if s, err = set(in, name, text); err != nil || s.Builtins("controller/dns")[0].Runs() {
				t.Errorf("%s: it runs unasked: %v", name, err)
			}
		}
	}
	in := settings.Defaults().Inputs
	for _, bad := range []string{":53", "localhost:53", "127.0.0.1", "127.0.0.1:0"} {
		in.DNSAddr = bad
		if _, err := set(in, kubernetesSet, coxswain.KubernetesSet()); err == nil || !strings.Contains(err.Error(), "IP:PORT") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	in.DNSAddr = "127.0.0.1:53"
	if _, err := set(in, "own.yaml", []byte("plugins: [{name: files, kind: config, builtin: config/file}]\n")); err == nil ||
		!strings.Contains(err.Error(), "controller/dns") {
		t.Errorf("a set without it: %v", err)
	}
}

// TestModulesDir: a setting has the sets' config/modules run, and a set without it says so; one of
// one's own says itself whether it runs.
func TestModulesDir(t *testing.T) {
	for name, text := range map[string][]byte{kubernetesSet: coxswain.KubernetesSet(), "plugins.yaml (built in)": coxswain.DefaultSet()} {
		for config, in := range map[string]settings.Modules{
			`{"directory":"/m"}`: {Dir: "/m"},
			`{"blockedCIDRs":["10.0.0.0/8","fd00::/8"],"directory":"/m"}`: {Dir: "/m", Blocked: "10.0.0.0/8, fd00::/8"},
			"": {},
		} {
			all := settings.Defaults().Inputs
			all.Modules = in
			s, err := set(all, name, text)
			if err != nil {
				t.Fatal(err)
			}
			if e := s.Builtins("config/modules"); len(e) != 1 || e[0].Runs() != (config != "") || string(e[0].Config) != config {
				t.Errorf("%s, %+v: %+v", name, in, e)
			}
		}
	}
	in := settings.Defaults().Inputs
	in.Modules.Dir = "/m"
	if _, err := set(in, "own.yaml", []byte("plugins: [{name: files, kind: config, builtin: config/file}]\n")); err == nil ||
		!strings.Contains(err.Error(), "--modulesDir has no one to go to") {
		t.Errorf("a set without it: %v", err)
	}
	in.Plugins = "own.yaml"
	s, err := set(in, "own.yaml", []byte("plugins: [{name: modules, kind: config, builtin: config/modules, disabled: true}]\n"))
	if err != nil || s.Plugins[0].Runs() {
		t.Errorf("it runs though the file disables it: %v", err)
	}
}

// TestUninjected: what reads a cluster's objects is told why nobody puts proxies into pods, unless
// somebody may, or it was told another reason.
func TestUninjected(t *testing.T) {
	const reads = "plugins:\n- {name: crds, kind: config, builtin: config/kubernetes%s}\n"
	for _, c := range []struct {
		name, text     string
		webhooks, only bool
		want           string
	}{
		{kubernetesSet, string(coxswain.KubernetesSet()), true, false, ""},
		{kubernetesSet, string(coxswain.KubernetesSet()), false, false, "no --httpsAddr"},
		{kubernetesSet, string(coxswain.KubernetesSet()), true, true, "--readOnly"},
		{"own.yaml", fmt.Sprintf(reads, ""), true, false, "no controller/injector runs"},
		{"own.yaml", fmt.Sprintf(reads, ", config: {uninjected: ours}"), true, false, "ours"},
		{"own.yaml", fmt.Sprintf(reads, "") + "- {name: mine, kind: controller, process: {command: ./mine}, insecure: true}\n", true, false, ""},
	} {
		in := settings.Defaults().Inputs
		in.Webhooks, in.ReadOnly = c.webhooks, c.only
		s, err := set(in, c.name, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var config struct{ Uninjected string }
		if text := s.Builtins("config/kubernetes")[0].Config; len(text) > 0 {
			if err := json.Unmarshal(text, &config); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(config.Uninjected, c.want) || (config.Uninjected == "") != (c.want == "") {
			t.Errorf("%s, %v, %v: %q, not %q", c.name, c.webhooks, c.only, config.Uninjected, c.want)
		}
	}
}

// TestReadOnlySet: where nothing is to be written no controller runs, whoever made it, and each
// says why; what was disabled anyway says nothing. Plugins are told by their environment.
func TestReadOnlySet(t *testing.T) {
	own := []byte(`plugins:
- {name: mine, kind: controller, process: {command: ./mine}, insecure: true}
- {name: not, kind: controller, builtin: controller/ca, disabled: true}
- {name: files, kind: config, builtin: config/file}
`)
	in := settings.Defaults().Inputs
	for i, text := range [][]byte{coxswain.KubernetesSet(), own} {
		for _, only := range []bool{false, true} {
			in.ReadOnly, in.ManageGateways, in.AutoRegistration, in.Analysis, in.Untaint.Nodes = only, i == 0, i == 0, i == 0, i == 0 // else nobody does that
			s, err := set(in, "plugins.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range s.Plugins {
				off := only && e.Kind == "controller" && !slices.Contains([]string{"not", "injector", "validator", "dns"}, e.Name)
				if says := strings.Contains(e.Off, "--readOnly"); says != off || off && e.Runs() {
					t.Errorf("readOnly %v: %s runs: %v, and says %q", only, e.Name, e.Runs(), e.Off)
				}
			}
		}
	}
	given := []string{"A=b", "COXSWAIN_READ_ONLY=1"}
	if got := readOnly(given, true); !slices.Equal(got, []string{"A=b", "COXSWAIN_READ_ONLY=true"}) {
		t.Error(got)
	}
	if got := readOnly(given, false); !slices.Equal(got, given[:1]) {
		t.Error(got)
	}
}
