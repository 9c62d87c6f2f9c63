package migrate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Running is how a control plane's own Deployment runs it.
type Running struct {
	// Deployment is its name, Image that of the program.
	Deployment, Image string
	// Args begin with discovery, Environ has NAME=VALUE.
	Args, Environ []string
	// Files are those of ConfigMaps, by their path in the container.
	Files map[string]string
	// Mounts are the paths of everything that is mounted.
	Mounts []string
	// Unread says what is not known: values and files of Secrets, and what the pod alone knows.
	Unread []string
}

// Running reads the Deployment that runs a control plane, that of a name if it is not empty, with
// the ConfigMaps that were read.
func (in *Input) Running(name string) (*Running, error) {
	var found []*appsv1.Deployment
	var names []string
	for _, d := range in.Deployments {
		if discovery(d) != nil && (name == "" || d.Name == name) {
			found, names = append(found, d), append(names, d.Name)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("want one Deployment that runs `discovery`, and there are %d: %q; --deployment says which", len(found), names)
	}
	d := found[0]
	r := &runs{in: in, namespace: d.Namespace, of: discovery(d), pod: &d.Spec.Template.Spec, env: map[string]string{}}
	r.Deployment, r.Image, r.Files = d.Name, r.of.Image, map[string]string{}
	r.environment()
	if err := r.arguments(); err != nil {
		return nil, fmt.Errorf("the Deployment %s: %w", d.Name, err)
	}
	for _, m := range r.of.VolumeMounts {
		r.mount(m)
	}
	return &r.Running, nil
}

// runs makes a Running.
type runs struct {
	Running
	in        *Input
	namespace string
	of        *corev1.Container
	pod       *corev1.PodSpec
	env       map[string]string
}

func (r *runs) unread(format string, args ...any) {
	r.Unread = append(r.Unread, fmt.Sprintf(format, args...))
}

// configMap returns a ConfigMap; nil, and a line of what is not known, where it was not read.
func (r *runs) configMap(name, wantedBy string, optional *bool) *corev1.ConfigMap {
	if c := r.in.ConfigMap(r.namespace, name); c != nil {
		return c
	}
	if optional == nil || !*optional {
		r.unread("%s: ConfigMap %s is not among what was read", wantedBy, name)
	}
	return nil
}

// ConfigMap returns a ConfigMap that was read; nil: it is not among them. One that says no
// namespace may be of any.
func (in *Input) ConfigMap(namespace, name string) *corev1.ConfigMap {
	for _, c := range in.ConfigMaps {
		if c.Name == name && (c.Namespace == namespace || c.Namespace == "" || namespace == "") {
			return c
		}
	}
	return nil
}

// environment reads it as the kubelet makes it. Source: Kubernetes, Container.env and envFrom.
func (r *runs) environment() {
	for _, from := range r.of.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			if c := r.configMap(from.ConfigMapRef.Name, "environment", from.ConfigMapRef.Optional); c != nil {
				for key, value := range c.Data {
					r.env[from.Prefix+key] = value
				}
			}
		case from.SecretRef != nil:
			r.unread("environment: that of Secret %s", from.SecretRef.Name)
		}
	}
	for _, v := range r.of.Env {
		switch from := v.ValueFrom; {
		case from == nil:
			r.env[v.Name] = r.expand(v.Value)
		case from.ConfigMapKeyRef != nil:
			if c := r.configMap(from.ConfigMapKeyRef.Name, v.Name, from.ConfigMapKeyRef.Optional); c != nil {
				r.env[v.Name] = c.Data[from.ConfigMapKeyRef.Key]
			}
		default:
			delete(r.env, v.Name)
			r.unread("%s: its value is %s", v.Name, source(from))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		r.Environ = append(r.Environ, name+"="+r.env[name])
	}
	r.Environ = append(r.Environ, "KUBERNETES_SERVICE_HOST=kubernetes.default.svc") // as in each pod
}

// expand replaces $(NAME) by variables that are known, and $$ by $.
// Source: Kubernetes, "Define Dependent Environment Variables".
func (r *runs) expand(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		value, known := r.env[name]
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && known:
			out.WriteString(value)
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

func (r *runs) arguments() error {
	all := slices.Concat(r.of.Command, r.of.Args)
	from := slices.Index(all, "discovery")
	if from < 0 {
		return fmt.Errorf("container %s has no argument discovery", r.of.Name)
	}
	for _, arg := range all[from:] {
		r.Args = append(r.Args, r.expand(arg))
	}
	return nil
}

// mount reads what a ConfigMap has at a path of the container.
func (r *runs) mount(m corev1.VolumeMount) {
	r.Mounts = append(r.Mounts, m.MountPath)
	i := slices.IndexFunc(r.pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
	if i < 0 {
		return
	}
	v := r.pod.Volumes[i]
	switch {
	case v.ConfigMap != nil:
		if c := r.configMap(v.ConfigMap.Name, m.MountPath, v.ConfigMap.Optional); c != nil {
			r.files(m, c.Data, v.ConfigMap.Items)
		}
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap == nil {
				r.unread("%s: what else than ConfigMaps is projected there", m.MountPath)
			} else if c := r.configMap(s.ConfigMap.Name, m.MountPath, s.ConfigMap.Optional); c != nil {
				r.files(m, c.Data, s.ConfigMap.Items)
			}
		}
	case v.Secret != nil:
		r.unread("%s: files of Secret %s", m.MountPath, v.Secret.SecretName)
	case v.EmptyDir == nil:
		r.unread("%s: files of volume %s", m.MountPath, m.Name)
	}
}

// files are those of a ConfigMap, all or those that items name.
func (r *runs) files(m corev1.VolumeMount, data map[string]string, items []corev1.KeyToPath) {
	if items == nil {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		text, ok := data[item.Key]
		switch at := path.Clean("/" + item.Path); {
		case !ok:
		case m.SubPath == "":
			r.Files[path.Join(m.MountPath, at)] = text
		case at == path.Clean("/"+m.SubPath):
			r.Files[path.Clean(m.MountPath)] = text
		default:
			if rest, ok := strings.CutPrefix(at, path.Clean("/"+m.SubPath)+"/"); ok {
				r.Files[path.Join(m.MountPath, rest)] = text
			}
		}
	}
}

// Tag is the tag of the image; empty: it has none.
func (r *Running) Tag() string {
	name, _, _ := strings.Cut(r.Image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return tag
}
