package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Policies of a Config: who gets a proxy that neither asks for one nor refuses one.
const (
	Enabled  = "enabled"
	Disabled = "disabled"
)

// mostTemplates and mostText bound a configuration.
const (
	mostTemplates = 100
	mostText      = 1 << 20
)

// Config is what is injected into which pods: the key `config` of ConfigMap
// istio-sidecar-injector, whose fields and meanings are Istio's.
type Config struct {
	Policy           string              `json:"policy"`
	DefaultTemplates []string            `json:"defaultTemplates"`
	Templates        map[string]string   `json:"templates"`
	Aliases          map[string][]string `json:"aliases"`

	NeverInjectSelector  []metav1.LabelSelector `json:"neverInjectSelector"`
	AlwaysInjectSelector []metav1.LabelSelector `json:"alwaysInjectSelector"`
	InjectedAnnotations  map[string]string      `json:"injectedAnnotations"`
}

// Settings are a configuration that can be used: its templates can be read. They don't change.
type Settings struct {
	config        Config
	values        Values
	templates     map[string]overlay
	never, always []labels.Selector
	// sheets are what templates have written.
	sheets sheets
}

// Values are what templates call .Values: the key `values` of ConfigMap istio-sidecar-injector.
type Values map[string]any

// Names are those whose variables and addresses templates may read; of others they see nothing.
type Names struct {
	// Env are variables of the process, Hosts names that may be resolved.
	Env, Hosts []string
}

// Read makes settings of the texts of ConfigMap istio-sidecar-injector. Where config has no
// templates, those of our own count, and what values leaves out is as in the built-in ones. The
// error says
// what is wrong, and in which template.
func Read(config, values string, allowed Names) (*Settings, error) {
	if len(config)+len(values) > mostText {
		return nil, fmt.Errorf("the configuration has %d bytes; %d are the most", len(config)+len(values), mostText)
	}
	s := &Settings{templates: map[string]overlay{}, sheets: newSheets()}
	if err := yaml.Unmarshal([]byte(config), &s.config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	own := len(s.config.Templates) == 0
	v, err := ReadValues(values, own)
	if err != nil {
		return nil, err
	}
	s.values = v
	if own {
		s.config.Templates = v.templates()
	}
	if strings.TrimSpace(config) == "" {
		s.config.Policy = Enabled
	}
	return s, s.finish(own, allowed)
}

// finish reads templates and selectors.
func (s *Settings) finish(own bool, allowed Names) (err error) {
	c := &s.config
	if len(c.DefaultTemplates) == 0 {
		c.DefaultTemplates = []string{sidecarName}
	}
	if c.Policy != Enabled && c.Policy != Disabled {
		return fmt.Errorf("config: policy: %q is neither %s nor %s", c.Policy, Enabled, Disabled)
	}
	if len(c.Templates) > mostTemplates {
		return fmt.Errorf("config: templates: there are %d; %d are the most", len(c.Templates), mostTemplates)
	}
	if own {
		maps.Copy(s.templates, builtin)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Templates)) {
		if s.templates[name], err = compile(name, c.Templates[name], allowed); err != nil {
			return fmt.Errorf("config: templates: %s: %w", name, err)
		}
	}
	if s.never, err = selectors("neverInjectSelector", c.NeverInjectSelector); err == nil {
		s.always, err = selectors("alwaysInjectSelector", c.AlwaysInjectSelector)
	}
	return err
}

func selectors(field string, list []metav1.LabelSelector) (out []labels.Selector, err error) {
	for i := range list {
		s, err := metav1.LabelSelectorAsSelector(&list[i])
		if err != nil {
			return nil, fmt.Errorf("config: %s[%d]: %w", field, i, err)
		}
		if !s.Empty() {
			out = append(out, s)
		}
	}
	return out, nil
}

// Templates returns the names of the templates, sorted.
func (s *Settings) Templates() []string { return slices.Sorted(maps.Keys(s.templates)) }

// Template returns the text of a template, and whether there is one of that name.
func (s *Settings) Template(name string) (string, bool) {
	text, ok := s.config.Templates[name]
	return text, ok
}

// ReadValues reads values; with usual, what the text leaves out is as in the built-in ones.
func ReadValues(text string, usual bool) (Values, error) {
	v := Values{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if !usual {
		return v, nil
	}
	all := Values{}
	if err := yaml.Unmarshal([]byte(usualValues), &all); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	lay(all, v)
	return all, nil
}

// lay puts what the second one says over the first; nulls stay, since templates may ask for them.
func lay(under, over map[string]any) {
	for k, v := range over {
		a, isMap := under[k].(map[string]any)
		b, both := v.(map[string]any)
		if isMap && both {
			lay(a, b)
			continue
		}
		under[k] = v
	}
}

// at returns what stands under keys; nil if nothing does.
func (v Values) at(keys ...string) any {
	var is any = map[string]any(v)
	for _, k := range keys {
		m, ok := is.(map[string]any)
		if !ok {
			return nil
		}
		is = m[k]
	}
	return is
}

// text is a value as templates print it; empty if there is none.
func (v Values) text(keys ...string) string {
	if is := v.at(keys...); is != nil {
		return fmt.Sprint(is)
	}
	return ""
}

// is reports whether a value is one that templates take for true.
func (v Values) is(keys ...string) bool { return truth(v.at(keys...)) }

// global and proxy are short for the two maps that most of it is in.
func (v Values) global(keys ...string) any { return v.at(append([]string{"global"}, keys...)...) }

func (v Values) proxy(key string) any { return v.at("global", "proxy", key) }

// templates are the ones that the values themselves bring (sidecarInjectorWebhook.templates).
func (v Values) templates() map[string]string {
	all := map[string]string{}
	m, _ := v.at("sidecarInjectorWebhook", "templates").(map[string]any)
	for name, t := range m {
		if text, ok := t.(string); ok {
			all[name] = text
		}
	}
	return all
}

// usualValues are what counts where nobody says otherwise; keys and meanings are those of the chart
// of istiod.
const usualValues = `
revision: ""
global:
  hub: docker.io/istio
  tag: 1.31.1
  variant: ""
  istioNamespace: istio-system
  imagePullPolicy: ""
  imagePullSecrets: []
  pilotCertProvider: istiod
  caAddress: ""
  caName: ""
  network: ""
  meshID: ""
  mountMtlsCerts: false
  logAsJson: false
  nativeNftables: false
  logging: {level: "default:info"}
  multiCluster: {clusterName: ""}
  sds: {token: {aud: istio-ca}}
  sts: {servicePort: 0}
  proxy:
    image: proxyv2
    clusterDomain: cluster.local
    logLevel: warning
    componentLogLevel: "misc:error"
    includeIPRanges: "*"
    excludeIPRanges: ""
    includeInboundPorts: "*"
    excludeInboundPorts: ""
    includeOutboundPorts: ""
    excludeOutboundPorts: ""
    outlierLogPath: ""
    privileged: false
    statusPort: 15020
    readinessInitialDelaySeconds: 0
    readinessPeriodSeconds: 15
    readinessFailureThreshold: 4
    startupProbe: {enabled: true, failureThreshold: 600}
    resources:
      requests: {cpu: 100m, memory: 128Mi}
      limits: {cpu: 2000m, memory: 1024Mi}
    tracer: none
  proxy_init: {image: proxyv2, forceApplyIptables: false}
  waypoint:
    resources:
      requests: {cpu: 100m, memory: 128Mi}
      limits: {cpu: "2", memory: 1Gi}
pilot:
  cni: {enabled: false, provider: default}
sidecarInjectorWebhook: {rewriteAppHTTPProbe: true}
`
