package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Names of containers, and of the template that counts where a pod names none.
const (
	proxyName      = "istio-proxy"
	initName       = "istio-init"
	validationName = "istio-validation"
	dumpName       = "enable-core-dump"
	sidecarName    = "sidecar"
)

// Annotations that the built-in templates heed.
const (
	bootstrapNote  = "sidecar.istio.io/bootstrapOverride"
	imageNote      = "sidecar.istio.io/proxyImage"
	modeNote       = "sidecar.istio.io/interceptionMode"
	nativeNote     = "sidecar.istio.io/nativeSidecar"
	statusPortNote = "status.sidecar.istio.io/port"
)

// builtin are templates of our own, which count where a configuration has none. They are made for
// agents and proxies of Istio's images.
var builtin = map[string]overlay{
	sidecarName:   made(sidecar),
	"gateway":     made(gateway),
	"grpc-agent":  made(grpcAgent),
	"grpc-simple": made(grpcSimple),
}

// made is a template that is a function: it changes an empty pod to what is laid over.
type made func(f *form)

func (m made) over(d *Data, _ sheets) (*sheet, error) {
	f := &form{Data: d, values: d.Values}
	f.pod.Spec.Containers = []corev1.Container{}
	m(f)
	if f.err != nil {
		return nil, f.err
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&f.pod)
	if err != nil {
		return nil, err
	}
	return &sheet{tree: tree, pod: &f.pod, plain: true}, nil
}

// form is a pod that is being filled in.
type form struct {
	*Data
	values Values
	pod    corev1.Pod
	err    error
}

// note is an annotation of the pod, or what is usual.
func (f *form) note(name string, usual any) string {
	if usual == nil {
		usual = ""
	}
	return noted(f.ObjectMeta, name, usual)
}

// number is an annotation, or what is usual, as a number.
func (f *form) number(name string, usual any) int32 {
	q, err := resource.ParseQuantity(f.note(name, or(usual, 0)))
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", name, err)
	}
	return int32(q.Value())
}

// convert makes a typed value of one of the values' file.
func (f *form) convert(what string, from, to any) {
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("values: %s: %w", what, err)
	}
}

// apps are the names of the pod's own containers.
func (f *form) apps() (names []string) {
	for _, c := range f.Spec.Containers {
		if c.Name != proxyName {
			names = append(names, c.Name)
		}
	}
	return names
}

func (f *form) label(name string, usual ...string) {
	if f.pod.Labels == nil {
		f.pod.Labels = map[string]string{}
	}
	v := f.ObjectMeta.Labels[name]
	for _, u := range usual {
		v = cmp.Or(v, u)
	}
	f.pod.Labels[name] = v
}

// identity are the labels and annotations that all kinds of proxies have.
func (f *form) identity(longest int) {
	l := f.ObjectMeta.Labels
	f.label("service.istio.io/canonical-name", l["app.kubernetes.io/name"], l["app"], f.DeploymentMeta.Name)
	f.label("service.istio.io/canonical-revision", l["app.kubernetes.io/version"], l["version"], "latest")
	if name := f.pod.Labels["service.istio.io/canonical-name"]; longest > 0 {
		if len(name) > longest {
			name = name[:longest]
		}
		f.pod.Labels["service.istio.io/canonical-name"] = strings.Trim(name, "-_.")
	}
	f.pod.Annotations = map[string]string{"istio.io/rev": cmp.Or(f.Revision, "default")}
	if apps := f.apps(); len(apps) > 0 {
		for _, name := range []string{"kubectl.kubernetes.io/default-logs-container", "kubectl.kubernetes.io/default-container"} {
			if _, ok := f.ObjectMeta.Annotations[name]; !ok {
				f.pod.Annotations[name] = apps[0]
			}
		}
	}
}

// image is the proxy's: a whole reference that is given, or else the one made of hub and tag.
func (f *form) image(usual any, otherwise string) string {
	if given := f.note(imageNote, usual); strings.Contains(given, "/") {
		return given
	}
	return otherwise
}

// arguments are the agent's.
func (f *form) arguments(role string) []string {
	args := []string{
		"proxy", role, "--domain", "$(POD_NAMESPACE).svc." + f.values.text("global", "proxy", "clusterDomain"),
		"--proxyLogLevel=" + f.note("sidecar.istio.io/logLevel", f.values.proxy("logLevel")),
		"--proxyComponentLogLevel=" + f.note("sidecar.istio.io/componentLogLevel", f.values.proxy("componentLogLevel")),
		f.logLevel(),
	}
	if port := f.values.global("sts", "servicePort"); truth(port) {
		args = append(args, fmt.Sprintf("--stsPort=%v", port))
	}
	if f.values.is("global", "logAsJson") {
		args = append(args, "--log_as_json")
	}
	return args
}

func (f *form) logLevel() string {
	return "--log_output_level=" + f.note("sidecar.istio.io/agentLogLevel", f.values.global("logging", "level"))
}

func (f *form) pull(c *corev1.Container) {
	c.ImagePullPolicy = corev1.PullPolicy(f.values.text("global", "imagePullPolicy"))
}

// resources are those that annotations ask for, or else those of the values.
func (f *form) resources() (r corev1.ResourceRequirements) {
	asked := false
	take := func(list *corev1.ResourceList, as corev1.ResourceName, note string) {
		v, ok := f.ObjectMeta.Annotations[note]
		if !ok {
			return
		}
		asked = true
		q, err := resource.ParseQuantity(v)
		if err != nil && f.err == nil {
			f.err = fmt.Errorf("%s: %w", note, err)
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[as] = q
	}
	take(&r.Requests, corev1.ResourceCPU, "sidecar.istio.io/proxyCPU")
	take(&r.Requests, corev1.ResourceMemory, "sidecar.istio.io/proxyMemory")
	take(&r.Limits, corev1.ResourceCPU, "sidecar.istio.io/proxyCPULimit")
	take(&r.Limits, corev1.ResourceMemory, "sidecar.istio.io/proxyMemoryLimit")
	if !asked {
		f.convert("global.proxy.resources", omitNil(f.values.proxy("resources")), &r)
	}
	return r
}

// seccomp is the profile of the values, if there is one.
func (f *form) seccomp() (p *corev1.SeccompProfile) {
	if v := f.values.proxy("seccompProfile"); truth(v) {
		f.convert("global.proxy.seccompProfile", v, &p)
	}
	return p
}

// lifecycle is that of the values, if there is one.
func (f *form) lifecycle() (l *corev1.Lifecycle) {
	if v := f.values.proxy("lifecycle"); truth(v) {
		f.convert("global.proxy.lifecycle", v, &l)
	}
	return l
}

func command(words ...string) *corev1.Lifecycle {
	return &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: words}}}
}

// ready is a probe of what the proxy says of itself.
func ready(port int32, delay, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(port)}},
		InitialDelaySeconds: delay, PeriodSeconds: period, TimeoutSeconds: 3, FailureThreshold: failures,
	}
}

// port is a port of TCP with a name.
func port(name string, number int32) []corev1.ContainerPort {
	return []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}}
}

// pullSecrets are those of the values.
func (f *form) pullSecrets() {
	list, _ := f.values.global("imagePullSecrets").([]any)
	for _, name := range list {
		f.pod.Spec.ImagePullSecrets = append(f.pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: fmt.Sprint(name)})
	}
}

// custom adds volumes, or mounts, that an annotation has as JSON, by name.
func custom[T any](f *form, note string, add func(name string, is T)) {
	text, ok := f.ObjectMeta.Annotations[note]
	if !ok {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		f.err = cmp.Or(f.err, listed(text, note, add))
		return
	}
	var all map[string]T
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		f.err = cmp.Or(f.err, fmt.Errorf("%s: %w", note, err))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(name, all[name])
	}
}

// listed is custom for a list, whose values say their names.
func listed[T any](text, note string, add func(name string, is T)) error {
	var names []struct{ Name string }
	var all []T
	err := json.Unmarshal([]byte(text), &names)
	if err == nil {
		err = json.Unmarshal([]byte(text), &all)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", note, err)
	}
	for i, is := range all {
		if names[i].Name == "" {
			return fmt.Errorf("%s: number %d of the list has no name", note, i+1)
		}
		add(names[i].Name, is)
	}
	return nil
}
