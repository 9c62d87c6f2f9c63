package migrate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
)

// elsewhere are variables of istiod's pods that are not istiod's own, and of webhooks.
var elsewhere = map[string]Outcome{
	"SERVICE_ACCOUNT": {"", Moot, "it is not asked for"},
	"KUBECONFIG":      {"", Moot, "istiod's chart names a file that is there for an istiod outside of its cluster alone; the setting kubeconfig says the same"},
	"GOMAXPROCS":      {"", Same, "Go's runtime reads it: set it in the Deployment, too"},
	"GOMEMLIMIT":      {"", Same, "Go's runtime reads it: set it in the Deployment, too, or memoryLimit"},
	"GOGC":            {"", Same, "Go's runtime reads it: set it in the Deployment, too"},
	"GODEBUG":         {"", Same, "Go's runtime reads it: set it in the Deployment, too"},
	"SSL_CERT_FILE":   {"", Same, "Go's runtime reads it: set it in the Deployment, too"},
	"SSL_CERT_DIR":    {"", Same, "Go's runtime reads it: set it in the Deployment, too"},
	"HTTP_PROXY":      {"", Same, "it is read: set it in the Deployment, too"},
	"HTTPS_PROXY":     {"", Same, "it is read: set it in the Deployment, too"},
	"NO_PROXY":        {"", Same, "it is read: set it in the Deployment, too"},
	"PLATFORM":        {"", Moot, "what a platform needs is said by values of charts"},
	"K_REVISION":      {"", Moot, "it is Knative's"},
}

// variables takes the environment: each is a setting, goes into plugins.yaml, or has no
// counterpart.
func (m *maker) variables() {
	m.says = map[string]string{"POD_NAMESPACE": m.Namespace}
	container := discovery(m.of)
	for _, v := range container.Env {
		if v.ValueFrom == nil {
			m.says[v.Name] = v.Value
		}
	}
	for _, v := range container.Env {
		m.variable(v)
	}
	for _, from := range container.EnvFrom {
		switch {
		case from.SecretRef != nil:
			m.out("variables of Secret "+from.SecretRef.Name, Differs, "a Secret is not read: have the Deployment "+
				"take its variables, too; those of istiod's that are read count (docs/configuration.md)")
		case from.ConfigMapRef != nil:
			m.out("variables of ConfigMap "+from.ConfigMapRef.Name, Differs,
				"they are not read here: have the Deployment take them, too; those of istiod's that are read count "+
					"(docs/configuration.md)")
		}
	}
}

// variable takes one.
func (m *maker) variable(v corev1.EnvVar) {
	what := "variable " + v.Name
	value, known := m.says[v.Name]
	of, ofIstiod := settings.OfIstiod(v.Name)
	other, isOther := elsewhere[v.Name]
	switch {
	case v.Name == "POD_NAMESPACE":
		if known {
			_ = m.setting("namespace", value)
			m.Namespace = value
		}
		m.out(what, Setting, "namespace: %s", m.Namespace)
	case isOther:
		m.out(what, other.Fate, "%s", other.Text)
	case !ofIstiod:
		m.out(what, Differs, "it is none of the variables of istiod's that are known (its value is not shown); leave it out, unless something else reads it")
	case of.Fate == settings.Moot:
		m.out(what, Moot, "it tunes what is inside of istiod")
	case !known:
		m.out(what, Differs, "its value is %s, which is not read here: %s", source(v.ValueFrom), m.advice(of))
	case value == "":
		m.out(what, Same, "it is empty, as if it were not there")
	default:
		m.said(what, of, value)
	}
}

// source says where a value is from.
func source(from *corev1.EnvVarSource) string {
	switch {
	case from.SecretKeyRef != nil:
		return "in the Secret " + from.SecretKeyRef.Name
	case from.ConfigMapKeyRef != nil:
		return "in the ConfigMap " + from.ConfigMapKeyRef.Name
	case from.FieldRef != nil:
		return "the pod's " + from.FieldRef.FieldPath
	}
	return "that of a resource"
}

// advice says what to do with a variable of istiod's whose value is not known.
func (m *maker) advice(of settings.IstiodVariable) string {
	switch of.Fate {
	case settings.Read:
		return "set the variable in the Deployment in the same way; it is read"
	case settings.HasSetting:
		return "say the same with the setting " + of.Note
	case settings.InPlugins:
		return of.Note + " in plugins.yaml"
	case settings.Always:
		return fmt.Sprintf("here it is always as if it said %q", of.Is)
	}
	return of.Note
}

// said takes a variable of istiod's with its value.
func (m *maker) said(what string, of settings.IstiodVariable, value string) {
	if of.Setting != "" {
		if of.Setting == "revision" && value == "default" {
			m.out(what, Same, "it is the default revision")
			return
		}
		if err := m.setting(of.Setting, value); err != nil {
			m.out(what, Differs, "it says %s, which is no value of %s: %v", short(value), of.Setting, err)
			return
		}
		m.out(what, Setting, "%s: %s", of.Setting, short(value))
		return
	}
	if m.hooked(what, of.Name, value) {
		return
	}
	if of.Is != "" && settings.SameValue(value, of.Is) {
		m.out(what, Same, "it is so here, too")
		return
	}
	if of.Fate == settings.InPlugins {
		if edit, ok := edits[of.Name]; ok {
			if err := edit(m.set, value); err != nil {
				m.out(what, Differs, "it says %s: %v; %s in plugins.yaml", short(value), err, of.Note)
				return
			}
			m.out(what, Plugin, "%s", of.Note)
			return
		}
	}
	m.out(what, Differs, "it says %s; %s", short(value), m.advice(of))
}

// hooked takes variables about webhooks.
func (m *maker) hooked(what, name, value string) bool {
	switch name {
	case "INJECT_ENABLED":
		yes, err := strconv.ParseBool(value)
		if m.injects = err != nil || yes; !m.injects {
			m.out(what, Plugin, "controller/injector stays disabled")
			return true
		}
		m.out(what, Plugin, "controller/injector is enabled")
	case "ENABLE_NATIVE_SIDECARS":
		if _, err := strconv.ParseBool(value); err != nil {
			m.set.config("controller/injector", "auto", "nativeSidecars")
		} else {
			m.set.config("controller/injector", strings.ToLower(value), "nativeSidecars")
		}
		m.out(what, Plugin, "nativeSidecars of controller/injector")
	case "COMPLIANCE_POLICY":
		m.set.config("controller/injector", value, "compliancePolicy")
		m.out(what, Differs, "agents keep to %s (compliancePolicy of controller/injector); this program's own TLS "+
			"does not: set tls-cipher-suites, and GODEBUG=fips140=only in the Deployment", short(value))
	case "INJECTION_WEBHOOK_CONFIG_NAME", "VALIDATION_WEBHOOK_CONFIG_NAME":
		m.out(what, Moot, "the configurations are named in plugins.yaml, and are new ones")
	default:
		return false
	}
	return true
}

// edits are what variables of istiod's change in plugins.yaml.
var edits = map[string]func(s *set, value string) error{
	"BLOCKED_CIDRS_IN_JWKS_URIS":               listed("config/jwks", "blockedCIDRs"),
	"CITADEL_SELF_SIGNED_CA_CERT_TTL":          timed("controller/ca", "root", "ttl"),
	"CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE":      counted("controller/ca", "root", "keySize"),
	"DEFAULT_WORKLOAD_CERT_TTL":                timed("controller/ca", "ttl"),
	"MAX_WORKLOAD_CERT_TTL":                    timed("controller/ca", "maxTTL"),
	"ROOT_CA_DIR":                              texted("controller/ca", "plugged"),
	"ENABLE_TLS_ON_SIDECAR_INGRESS":            switched("generator/istio", "tlsOnSidecarIngress"),
	"PILOT_ENABLE_PERSISTENT_SESSION_FILTER":   switched("generator/istio", "persistentSessions"),
	"PILOT_ENABLE_QUIC_LISTENERS":              switched("generator/istio", "quicListeners"),
	"PILOT_ENABLE_SERVICEENTRY_SELECT_PODS":    switched("registry/serviceentry", "selectPods"),
	"PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES": switched("registry/serviceentry", "selectWorkloadEntries"),
	"PILOT_JWT_PUB_KEY_REFRESH_INTERVAL":       timed("config/jwks", "refresh"),
	"PILOT_IP_AUTOALLOCATE_IPV4_PREFIX":        texted("controller/addresses", "ipv4"),
	"PILOT_IP_AUTOALLOCATE_IPV6_PREFIX":        texted("controller/addresses", "ipv6"),
	"ENABLE_MCS_SERVICE_DISCOVERY":             switched("registry/kubernetes", "multiCluster", "discovery"),
	"ENABLE_MCS_HOST":                          hosts,
	"ENABLE_MCS_CLUSTER_LOCAL":                 switched("registry/kubernetes", "multiCluster", "clusterLocal"),
	"MCS_API_GROUP":                            texted("registry/kubernetes", "multiCluster", "group"),
	"MCS_API_VERSION":                          texted("registry/kubernetes", "multiCluster", "version"),
	"ENABLE_MCS_AUTO_EXPORT":                   exported,
	"PILOT_ENABLE_IP_AUTOALLOCATE":             without("controller/addresses"),
	"PILOT_ANALYSIS_INTERVAL":                  timed("controller/analysis", "interval"),
	"PILOT_WORKLOAD_ENTRY_GRACE_PERIOD":        timed("controller/registration", "grace"),
	"PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS": switched("controller/registration", "healthChecks"),
	"PILOT_JWT_ENABLE_REMOTE_JWKS":             fetched,
}

func texted(builtin string, at ...string) func(*set, string) error {
	return func(s *set, value string) error { s.config(builtin, value, at...); return nil }
}

func listed(builtin string, at ...string) func(*set, string) error {
	return func(s *set, value string) error {
		var all []string
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
		s.config(builtin, all, at...)
		return nil
	}
}

func timed(builtin string, at ...string) func(*set, string) error {
	return func(s *set, value string) error {
		d, err := time.ParseDuration(value)
		if err == nil {
			s.config(builtin, d.String(), at...)
		}
		return err
	}
}

func counted(builtin string, at ...string) func(*set, string) error {
	return func(s *set, value string) error {
		n, err := strconv.Atoi(value)
		if err == nil {
			s.config(builtin, n, at...)
		}
		return err
	}
}

func switched(builtin string, at ...string) func(*set, string) error {
	return func(s *set, value string) error {
		yes, err := strconv.ParseBool(value)
		if err == nil {
			s.config(builtin, yes, at...)
		}
		return err
	}
}

// without takes a plugin out where the variable says no.
func without(builtin string) func(*set, string) error {
	return func(s *set, value string) error {
		yes, err := strconv.ParseBool(value)
		if err == nil && !yes {
			s.disable(builtin)
		}
		return err
	}
}

// hosts of Multi-Cluster Services are made by a plugin of their own, which several adds.
func hosts(s *set, value string) error {
	yes, err := strconv.ParseBool(value)
	if err != nil || !yes {
		return err
	}
	s.config("registry/kubernetes", true, "multiCluster", "hosts")
	return nil
}

// exported says that services are exported, by a plugin that several adds.
func exported(_ *set, value string) error {
	_, err := strconv.ParseBool(value)
	return err
}

// fetched is who fetches key sets. Source: Istio, PILOT_JWT_ENABLE_REMOTE_JWKS: istiod (false),
// hybrid, envoy (true).
func fetched(s *set, value string) error {
	who, ok := map[string]string{"false": "coxswain", "istiod": "coxswain", "hybrid": "hybrid", "true": "hybrid", "envoy": "proxy"}[strings.ToLower(value)]
	if !ok {
		return fmt.Errorf("it is neither istiod, hybrid nor envoy")
	}
	s.config("generator/istio", who, "jwksFetch")
	return nil
}
