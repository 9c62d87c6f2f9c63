package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/spf13/pflag"
)

// Fate is what becomes of something that istiod is told.
type Fate string

// Fates.
const (
	Same    Fate = "goes on as it is"
	Setting Fate = "is in settings.yaml"
	Plugin  Fate = "is in plugins.yaml"
	Differs Fate = "differs"
	Moot    Fate = "means nothing here"
)

// Outcome is what becomes of one thing: an argument, a variable, a file, an object.
type Outcome struct {
	What string `json:"what"`
	Fate Fate   `json:"fate"`
	// Text says more; of what differs, what to do.
	Text string `json:"text,omitempty"`
}

// Plan is how Coxswain is told what an istiod is told.
type Plan struct {
	// Namespace is the control plane's, Revision its revision (empty: the default one), Account its
	// service account.
	Namespace, Revision, Account string
	// Settings are values of settings, by name.
	Settings map[string]any
	// Set is a plugins.yaml, Rights are objects in YAML, Webhooks configurations.
	Set, Rights []byte
	// Pods is a patch for the Deployment of deploy/kubernetes, of what istiod's pods have; nil:
	// nothing.
	Pods     []byte
	Webhooks []any
	// Leaving are configurations of istiod's webhooks, KIND/NAME, which have to go.
	Leaving  []string
	Outcomes []Outcome
}

// maker makes a plan.
type maker struct {
	*Plan
	in    *Input
	of    *appsv1.Deployment
	flags *pflag.FlagSet
	// says are the variables with their values, as far as these are known.
	says map[string]string
	set  *set
	// injects, validates: webhooks are wanted.
	injects, validates bool
	// everywhere: istiod injects into pods of namespaces that say nothing.
	everywhere bool
	// exports: services are to be exported.
	exports bool
	// multiCluster are rights to objects of Multi-Cluster Services.
	multiCluster []any
	// renamed are names of objects that rights are about, by RESOURCE/NAME in deploy/kubernetes,
	// and their groups, by group/GROUP.
	renamed map[string][]string
}

// Make says what becomes of an istiod: of the Deployment of that name, if it is not empty. The
// error is that there is none, or that there are several.
func Make(in *Input, deployment string) (*Plan, error) {
	d, err := in.istiod(deployment)
	if err != nil {
		return nil, err
	}
	set, err := newSet()
	if err != nil {
		return nil, err
	}
	m := &maker{Plan: &Plan{Namespace: cmp.Or(d.Namespace, "istio-system"), Settings: map[string]any{}}, in: in,
		of: d, set: set, injects: true, validates: true}
	m.flags = pflag.NewFlagSet("discovery", pflag.ContinueOnError)
	settings.Flags(m.flags, settings.Defaults())
	settings.PilotFlags(m.flags)
	m.ports()
	m.variables()
	m.arguments()
	m.pod()
	m.settle()
	m.Revision, _ = m.Settings["revision"].(string)
	m.Account = "coxswain" + webhooks.Suffix(m.Revision)
	m.maps()
	m.webhooks()
	m.others()
	m.enable()
	m.several()
	if err := m.copied(); err != nil {
		return nil, err
	}
	if m.Set, err = m.set.text(); err != nil {
		return nil, err
	}
	m.Rights, err = m.rights()
	return m.Plan, err
}

func (m *maker) out(what string, fate Fate, format string, args ...any) {
	m.Outcomes = append(m.Outcomes, Outcome{What: what, Fate: fate, Text: fmt.Sprintf(format, args...)})
}

// ports are istiod's, which are on all interfaces: here they are on loopback where nobody says.
// Source: Istio, `pilot-discovery discovery --help`.
func (m *maker) ports() {
	for name, is := range map[string]string{"grpcAddr": ":15010", "secureGRPCAddr": ":15012", "httpAddr": ":8080",
		"httpsAddr": ":15017", "monitoringAddr": ":15014"} {
		_ = m.setting(name, is)
	}
	_ = m.setting("namespace", m.Namespace)
}

// setting takes a value for a setting. The error says why it can't be.
func (m *maker) setting(name, value string) error {
	f := m.flags.Lookup(name)
	if f == nil {
		return fmt.Errorf("there is no setting %s", name)
	}
	if err := m.flags.Set(name, value); err != nil {
		_ = f.Value.Set(f.DefValue)
		return errors.Unwrap(err)
	}
	switch f.Value.Type() {
	case "bool":
		m.Settings[name] = f.Value.String() == "true"
	default:
		m.Settings[name] = value
	}
	return nil
}

// settle takes settings back that can't be, by themselves or with others.
func (m *maker) settle() {
	for range len(m.Settings) {
		_, _, err := settings.Load(m.flags, nil)
		if err == nil {
			return
		}
		taken := false
		for line := range strings.Lines(err.Error()) {
			for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
				if f := m.flags.Lookup(name); f.Changed && strings.Contains(line, name+":") {
					m.refused(name, fmt.Sprintf("what istiod is told is no value here, and is left out: %s", strings.TrimSpace(line)))
					m.back(f)
					taken = true
				}
			}
		}
		if !taken {
			m.out("settings", Differs, "what istiod is told can't be together: %v", err)
			return
		}
	}
}

// refused says that a setting can't be, of what has set it.
func (m *maker) refused(name, why string) {
	if !m.instead(name, Differs, why) {
		m.out("setting "+name, Differs, "%s", why)
	}
}

// instead says otherwise what becomes of that of which it was said that it is a setting, and
// reports whether that was said of anything.
func (m *maker) instead(setting string, fate Fate, text string) (said bool) {
	for i, o := range m.Outcomes {
		if o.Fate == Setting && strings.HasPrefix(o.Text, setting+": ") {
			m.Outcomes[i].Fate, m.Outcomes[i].Text = fate, text
			said = true
		}
	}
	return said
}

// back takes a setting back.
func (m *maker) back(f *pflag.Flag) {
	if err := f.Value.Set(f.DefValue); err != nil {
		m.out("setting "+f.Name, Differs, "%v", err)
	}
	f.Changed = false
	delete(m.Settings, f.Name)
}

// mostValue is how many bytes of a value are repeated.
const mostValue = 200

func short(value string) string {
	if len(value) > mostValue {
		value = value[:mostValue] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(value, "?"))
}

// argument takes one flag.
func (m *maker) argument(what string, f *pflag.Flag, value string) {
	value, err := m.expanded(value)
	switch {
	case f == nil:
		m.out(what, Differs, "it is no flag that is known, which istiod would pass over; leave it out, or find what "+
			"it is called (coxswain discovery --help-all)")
	case err != nil:
		m.out(what, Differs, "%v", err)
	case f.Name == "log_output_level":
		m.level(what, value)
	case f.Name == "log_as_json":
		if value == "true" {
			m.Settings["logFormat"] = "json"
			m.out(what, Setting, "logFormat: json")
		}
	case f.Hidden:
		m.out(what, Moot, "it is accepted, and has no effect")
	case f.Name == "httpsAddr" && value == "":
		m.Settings["httpsAddr"] = ":15017"
		m.out(what, Differs, "istiod answers webhooks at its HTTP port then; here they have a port of their own, :15017")
	case f.Name == "registries":
		if value != "Kubernetes" {
			m.out(what, Differs, "add what %s stands for to plugins.yaml", short(value))
			return
		}
		m.out(what, Plugin, "the set has the cluster's registry")
	default:
		if err := m.setting(f.Name, value); err != nil {
			m.out(what, Differs, "it says %s, which is no value here: %v", short(value), err)
			return
		}
		m.out(what, Setting, "%s: %s", f.Name, short(value))
	}
}

// expanded puts variables into a value, as Kubernetes does: $(NAME).
func (m *maker) expanded(value string) (string, error) {
	for range 100 {
		start := strings.Index(value, "$(")
		if start < 0 {
			return value, nil
		}
		name, rest, ok := strings.Cut(value[start+2:], ")")
		said, known := m.says[name]
		if !ok || !known {
			return "", fmt.Errorf("it has a variable in it whose value is not here, %s: write the value into settings.yaml", short(name))
		}
		value = value[:start] + said + rest
	}
	return "", fmt.Errorf("it has too many variables in it")
}

// level is what istiod calls default:LEVEL; levels of its parts are other parts' here.
func (m *maker) level(what, value string) {
	level, parts := "", []string{}
	for part := range strings.SplitSeq(value, ",") {
		scope, of, ok := strings.Cut(part, ":")
		if !ok {
			scope, of = "default", scope
		}
		if scope != "default" && scope != "all" {
			parts = append(parts, scope)
			continue
		}
		level = map[string]string{"none": "error", "fatal": "error"}[of]
		level = cmp.Or(level, of)
	}
	if level != "" {
		if !slices.Contains(settings.Levels(), level) {
			m.out(what, Differs, "%s is no level here; set logLevel", short(level))
			return
		}
		m.Settings["logLevel"] = level
		m.out(what, Setting, "logLevel: %s", level)
	}
	if len(parts) > 0 {
		m.out(what, Differs, "levels of istiod's parts (%s) have no counterpart; coxswain log set sets those of "+
			"parts here, while it runs", short(strings.Join(parts, ", ")))
	}
}

// mounts of istiod's chart, and what they are here.
var mounts = map[string]Outcome{
	"/etc/cacerts":                {"", Same, "mount the Secret cacerts there: a CA that is plugged in goes on (controller/ca)"},
	"/etc/istio/config":           {"", Moot, "the mesh's settings are read from the ConfigMap, which is followed"},
	"/var/lib/istio/inject":       {"", Moot, "templates are read from the ConfigMap, which is followed"},
	"/var/run/secrets/tokens":     {"", Moot, "it is not asked for"},
	"/var/run/secrets/istio-dns":  {"", Moot, "certificates are not written to files"},
	"/var/run/secrets/istiod/tls": {"", Same, "mount it there, with ca beside it: a certificate of files is used where it is"},
	"/var/run/secrets/istiod/ca":  {"", Same, "mount it there, with tls beside it"},
	"/var/run/secrets/remote": {"", Differs, "where the Secret istio-kubeconfig is there, istiod serves " +
		"another cluster: mount it, and set kubeconfig: /var/run/secrets/remote/config"},
	"/etc/external-ca-cert":            {"", Same, "mount it there: roots of who signs"},
	"/cacerts":                         {"", Differs, "authorities for key sets: mount them, and set SSL_CERT_FILE to the file"},
	"/tmp":                             {"", Same, "mount an emptyDir there: sockets of plugins are in it"},
	"/var/run/secrets/workload-spiffe": {"", Moot, "it is not asked for"},
}

// pod is what else the pods of istiod have.
func (m *maker) pod() {
	spec, container := m.of.Spec.Template.Spec, discovery(m.of)
	from := map[string]string{}
	for _, v := range spec.Volumes {
		from[v.Name] = volume(v)
	}
	for _, mount := range container.VolumeMounts {
		what := "mount " + mount.MountPath
		if known, ok := mounts[strings.TrimSuffix(mount.MountPath, "/")]; ok {
			m.out(what, known.Fate, "%s", known.Text)
			continue
		}
		m.out(what, Differs, "it is of your own (%s): mount it, too, if a setting names a file in it", from[mount.Name])
	}
	for _, c := range spec.Containers {
		if c.Name != container.Name {
			m.out("container "+c.Name, Differs, "it runs beside istiod: add it to the Deployment, if it is wanted here")
		}
	}
	for _, c := range spec.InitContainers {
		m.out("init container "+c.Name, Differs, "it runs before istiod: add it to the Deployment, if it is wanted here")
	}
	if spec.HostNetwork {
		m.out("hostNetwork", Differs, "istiod's pods have the node's network: set it in the Deployment, if nodes can't be reached otherwise")
	}
}

// volume says where a volume is from, by name.
func volume(v corev1.Volume) string {
	switch {
	case v.Secret != nil:
		return "Secret " + v.Secret.SecretName
	case v.ConfigMap != nil:
		return "ConfigMap " + v.ConfigMap.Name
	case v.Projected != nil:
		return "projected volume " + v.Name
	}
	return "volume " + v.Name
}

// enable has plugins run that settings need: a set of one's own says itself what runs.
func (m *maker) enable() {
	for setting, builtin := range map[string]string{"jwtRule": "authenticator/jwt",
		"trustedGatewayCIDR": "authenticator/xfcc", "spiffeBundleEndpoints": "config/spiffe"} {
		if m.Settings[setting] != nil && m.Settings[setting] != "" {
			m.set.enable(builtin)
		}
	}
	if m.Settings["multiRootMesh"] == true {
		m.set.enable("config/spiffe")
	}
	if m.Settings["enableCAServer"] == false {
		m.set.disable("controller/ca")
		delete(m.Settings, "enableCAServer") // it is of the built-in set
		m.instead("enableCAServer", Plugin, "controller/ca is disabled")
	}
	if m.Revision != "" && m.Revision != webhooks.Default {
		m.set.config("config/mesh", "istio-"+m.Revision, "configMap")
	}
	if m.injects {
		m.set.enable("controller/injector")
		m.set.config("controller/injector", []string{webhooks.Injector(m.Revision)}, "webhooks")
	}
	if m.validates {
		m.set.enable("controller/validator")
		m.set.config("controller/validator", []string{webhooks.Validator(m.Revision)}, "webhooks")
	}
	if !m.injects && !m.validates {
		delete(m.Settings, "httpsAddr")
		m.instead("httpsAddr", Moot, "nothing is asked there: there are webhooks neither for pods nor for objects")
	}
}
