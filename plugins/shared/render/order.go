package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"istio.io/api/annotation"
	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"
)

// finish does what is done to every pod, whatever the templates say.
func (i *injection) finish() error {
	if i.pod.Annotations == nil {
		i.pod.Annotations = map[string]string{}
	}
	i.tellPlaces()
	if err := i.metrics(); err != nil {
		return err
	}
	i.secured()
	if err := i.rewriteProbes(); err != nil {
		return err
	}
	if network, ok := i.env[networkVariable]; ok {
		if i.pod.Labels == nil {
			i.pod.Labels = map[string]string{}
		}
		i.pod.Labels[label.TopologyNetwork.Name] = network
	}
	i.note(annotation.SidecarStatus.Name, i.status())
	maps.Copy(i.pod.Annotations, i.config.InjectedAnnotations)
	i.order()
	return nil
}

// tellPlaces tells the proxy its cluster and its network, whatever the template says.
func (i *injection) tellPlaces() {
	proxy := proxyOf(i.pod)
	if proxy == nil || len(i.env) == 0 {
		return
	}
	proxy.Env = slices.DeleteFunc(proxy.Env, func(e corev1.EnvVar) bool { _, told := i.env[e.Name]; return told })
	for _, name := range slices.Sorted(maps.Keys(i.env)) {
		proxy.Env = append(proxy.Env, corev1.EnvVar{Name: name, Value: i.env[name]})
	}
}

// status says in the pod what was injected.
func (i *injection) status() string {
	s, spec := status{Revision: cmp.Or(i.Revision, "default")}, i.laid.Spec
	for _, c := range spec.InitContainers {
		s.InitContainers = append(s.InitContainers, c.Name)
	}
	for _, c := range spec.Containers {
		s.Containers = append(s.Containers, c.Name)
	}
	for _, v := range spec.Volumes {
		s.Volumes = append(s.Volumes, v.Name)
	}
	for _, p := range spec.ImagePullSecrets {
		s.ImagePullSecrets = append(s.ImagePullSecrets, p.Name)
	}
	text, _ := json.Marshal(s)
	return string(text)
}

// order puts containers where they are to start: the redirection before all that speaks, and the
// proxy first where the workload waits for it.
func (i *injection) order() {
	hold := i.Proxy.GetHoldApplicationUntilProxyStarts().GetValue() || i.values.is("global", "proxy", "holdApplicationUntilProxyStarts")
	spec := &i.pod.Spec
	spec.Containers = placed(spec.Containers, proxyName, hold)
	if find(spec.InitContainers, proxyName) != nil {
		for _, name := range []string{dumpName, proxyName, validationName, initName} {
			spec.InitContainers = placed(spec.InitContainers, name, true)
		}
		return
	}
	spec.InitContainers = placed(spec.InitContainers, validationName, true)
	spec.InitContainers = placed(spec.InitContainers, initName, false)
	spec.InitContainers = placed(spec.InitContainers, dumpName, false)
}

// placed puts a container first or last.
func placed(list []corev1.Container, name string, first bool) []corev1.Container {
	c := find(list, name)
	if c == nil {
		return list
	}
	rest := removed(list, name)
	if first {
		return append([]corev1.Container{*c}, rest...)
	}
	return append(rest, *c)
}
