package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"text/template"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	mesh "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	settings "github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
)

// nothing is what functions that write JSON make of what they can't write.
const nothing = "{}"

// istio are the functions that Istio's templates call, by their names; what each one does is in
// Istio's documentation of custom templates, or seen in what its own templates make.
var istio = map[string]any{
	"annotation":             noted,
	"appendMultusNetwork":    withNetwork,
	"applicationPorts":       func(c []corev1.Container) string { return ports(c, proxyName) },
	"contains":               func(part, of string) bool { return strings.Contains(of, part) },
	"directory":              func(file string) string { dir, _ := path.Split(file); return dir },
	"excludeInboundPort":     withPort,
	"excludeInterfaces":      func(s string) string { return s },
	"formatDuration":         func(d *durationpb.Duration) string { return d.AsDuration().String() },
	"fromJSON":               fromJSON,
	"includeInboundPorts":    func(c []corev1.Container) string { return ports(c, "") },
	"indent":                 indented,
	"isset":                  func(m map[string]string, key string) bool { _, ok := m[key]; return ok },
	"kubevirtInterfaces":     func(s string) string { return s },
	"mergeMaps":              merged,
	"omit":                   without,
	"omitNil":                func(v any) any { return omitNil(v) },
	"otelResourceAttributes": attributes,
	"protoToJSON":            protoToJSON,
	"strdict":                dictionary,
	"structToJSON":           toJSON,
	"toJSON":                 func(m map[string]string) string { return mapToJSON(m) },
	"toJsonMap":              func(m ...map[string]string) string { return toJSON(merged(m...)) },
	"toLower":                strings.ToLower,
	"toYaml":                 toYAML,
	"valueOrDefault":         or,
}

// truth reports whether a value is what {{if}} takes for true.
func truth(v any) bool {
	yes, ok := template.IsTrue(v)
	return ok && yes && v != nil
}

// or returns a value, or another one where it is nothing.
func or(v, other any) any {
	if v == nil || v == "" {
		return other
	}
	return v
}

// noted returns an annotation, or what is usual, as text.
func noted(m metav1.ObjectMeta, name string, usual any) string {
	if v, ok := m.Annotations[name]; ok {
		return v
	}
	return fmt.Sprint(usual)
}

func mapToJSON(m map[string]string) string {
	if m == nil {
		return nothing
	}
	return toJSON(m)
}

func toJSON(v any) string {
	if v == nil {
		return nothing
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nothing
	}
	return string(b)
}

func fromJSON(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nothing
	}
	return v
}

func toYAML(v any) string {
	b, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// indented moves all lines but the first.
func indented(by int, s string) string {
	if by < 0 || by > mostItems {
		return s
	}
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", by))
}

// withPort adds a port to a list, unless it is there, or none.
func withPort(port any, list string) string {
	p := strings.TrimSpace(fmt.Sprint(port))
	if p == "" || p == "0" {
		return list
	}
	var all []string
	for of := range strings.SplitSeq(list, ",") {
		if of == p {
			return list
		}
		if of = strings.TrimSpace(of); of != "" {
			all = append(all, of)
		}
	}
	return strings.Join(append(all, p), ",")
}

// ports lists the TCP ports of containers but one.
func ports(of []corev1.Container, except string) string {
	var all []string
	for _, c := range of {
		if except != "" && c.Name == except {
			continue
		}
		for _, p := range c.Ports {
			if p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP {
				all = append(all, strconv.Itoa(int(p.ContainerPort)))
			}
		}
	}
	return strings.Join(all, ",")
}

// withNetwork adds a network, as [NAMESPACE/]NAME, to an annotation of Multus: a list with commas,
// or JSON.
func withNetwork(list, network string) string {
	if list == "" {
		return network
	}
	end := strings.LastIndex(list, "]")
	if end < 0 {
		for n := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(n) == network {
				return list
			}
		}
		return list + ", " + network
	}
	var there []map[string]any
	if json.Unmarshal([]byte(list), &there) != nil {
		return list
	}
	namespace, name, ok := strings.Cut(network, "/")
	if !ok {
		namespace, name = "", network
	}
	for _, n := range there {
		if n["name"] == name && or(n["namespace"], "") == namespace {
			return list
		}
	}
	own := fmt.Sprintf(`{"name": %q}`, name)
	if namespace != "" {
		own = fmt.Sprintf(`{"name": %q, "namespace": %q}`, name, namespace)
	}
	if len(there) > 0 {
		own = ", " + own
	}
	return list[:end] + own + list[end:]
}

func merged(all ...map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

func without(m map[string]string, keys ...string) map[string]string {
	out := merged(m)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// dictionary makes a map of keys and values that take turns.
func dictionary(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = ""
		if i+1 < len(pairs) {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

// omitNil returns a value without its nulls, and without maps and lists that held nothing else.
func omitNil(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = omitNil(e); e != nil {
				out[k] = e
			}
		}
		if len(out) == 0 && len(v) > 0 {
			return nil
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			if e = omitNil(e); e != nil {
				out = append(out, e)
			}
		}
		if len(out) == 0 && len(v) > 0 {
			return nil
		}
		return out
	}
	return v
}

// protoToJSON writes a message; of settings of proxies what is not as usual.
func protoToJSON(m proto.Message) string {
	p, ok := m.(*mesh.ProxyConfig)
	if ok && p != nil {
		m = unusual(p)
	}
	if m == nil || !m.ProtoReflect().IsValid() {
		return nothing
	}
	b, err := protojson.Marshal(m)
	if err != nil {
		return nothing
	}
	return compact(b)
}

// compact drops spaces, which protojson writes at random.
func compact(b []byte) string {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return nothing
	}
	return toJSON(v)
}

// unusual are the settings that are not as they are without any.
func unusual(p *mesh.ProxyConfig) *mesh.ProxyConfig {
	p = proto.CloneOf(p)
	usual := settings.Defaults().DefaultConfig
	if was, is := usual.GetServiceCluster(), p.GetServiceCluster(); was == is {
		p.ClusterName = nil
	}
	of, by := p.ProtoReflect(), usual.ProtoReflect()
	for _, name := range []string{
		"config_path", "binary_path", "control_plane_auth_policy", "drain_duration", "termination_drain_duration", "discovery_address",
		"envoy_metrics_service", "envoy_access_log_service", "tracing", "proxy_admin_port", "stat_name_length", "status_port", "concurrency",
	} {
		f := of.Descriptor().Fields().ByTextName(name)
		if f != nil && of.Has(f) && by.Has(f) && of.Get(f).Equal(by.Get(f)) {
			of.Clear(f)
		}
	}
	return p
}

// attributes are OpenTelemetry's of a workload, where a provider of traces is to have them.
func attributes(m *mesh.MeshConfig, annotations, labels map[string]string, namespace string, containers []corev1.Container) string {
	const prefix = "resource.opentelemetry.io/"
	wanted := false
	for _, p := range m.GetExtensionProviders() {
		wanted = wanted || p.GetOpentelemetry().GetServiceAttributeEnrichment() == mesh.MeshConfig_ExtensionProvider_OTEL_SEMANTIC_CONVENTIONS
	}
	if !wanted {
		return ""
	}
	var all []string
	add := func(name string, candidates ...string) {
		for _, v := range append([]string{annotations[prefix+name]}, candidates...) {
			if v != "" {
				all = append(all, name+"="+v)
				return
			}
		}
	}
	version, instance := "", ""
	if len(containers) == 1 {
		version = imageVersion(containers[0].Image)
	}
	if len(containers) > 0 {
		instance = namespace + ".$(POD_NAME)." + containers[0].Name
	}
	add("service.namespace", namespace)
	add("service.version", labels["app.kubernetes.io/version"], version)
	add("service.instance.id", instance)
	return strings.Join(all, ",")
}

// imageVersion is an image's tag and digest, with an @ between them.
func imageVersion(image string) string {
	image, digest, _ := strings.Cut(image, "@")
	tag := ""
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		tag = image[at+1:]
	}
	if tag != "" && digest != "" {
		return tag + "@" + digest
	}
	return tag + digest
}
