package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"istio.io/api/annotation"
	mesh "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// status is what was injected into a pod, as its annotation says.
type status struct {
	InitContainers   []string `json:"initContainers"`
	Containers       []string `json:"containers"`
	Volumes          []string `json:"volumes"`
	ImagePullSecrets []string `json:"imagePullSecrets"`
	Revision         string   `json:"revision"`
}

// statusOf returns what was injected before; nil if nothing was.
func statusOf(pod *corev1.Pod) *status {
	text, ok := pod.Annotations[annotation.SidecarStatus.Name]
	s := &status{}
	if !ok || json.Unmarshal([]byte(text), s) != nil {
		return nil
	}
	return s
}

// overrides are containers of the pod that have the names of injected ones: what they say counts.
type overrides struct {
	Containers     []corev1.Container `json:"containers,omitempty"`
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
}

func overridesOf(pod *corev1.Pod) (o overrides, err error) {
	if text, ok := pod.Annotations[annotation.ProxyOverrides.Name]; ok {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return o, fmt.Errorf("annotation %s: %w", annotation.ProxyOverrides.Name, err)
		}
	}
	return o, nil
}

// bare returns the pod as it was before anything was injected.
func (i *injection) bare() (*corev1.Pod, error) {
	pod := i.Pod.DeepCopy()
	if was := statusOf(pod); was != nil {
		for _, name := range was.Containers {
			pod.Spec.Containers = removed(pod.Spec.Containers, name)
		}
		for _, name := range was.InitContainers {
			pod.Spec.InitContainers = removed(pod.Spec.InitContainers, name)
		}
		if port, ok := scraped(pod, portKey); ok && port == strconv.Itoa(int(i.statusPort())) {
			unscrape(pod)
		}
		delete(pod.Annotations, annotation.SidecarStatus.Name)
	}
	o, err := overridesOf(pod)
	if err != nil {
		return nil, err
	}
	add := func(list *[]corev1.Container, more []corev1.Container) {
		for _, c := range more {
			if find(*list, c.Name) == nil {
				*list = append(*list, c)
			}
		}
	}
	add(&pod.Spec.Containers, o.Containers)
	add(&pod.Spec.InitContainers, o.InitContainers)
	return pod, nil
}

// again lays over the pod what it says itself about injected containers.
func (i *injection) again() error {
	before, err := overridesOf(i.Pod)
	if err != nil {
		return err
	}
	was, now := statusOf(i.Pod), overrides{}
	_, noted := i.Pod.Annotations[annotation.SidecarStatus.Name]
	if was == nil {
		was = &status{}
	}
	for _, c := range i.laid.Spec.Containers {
		if slices.Contains(was.Containers, c.Name) {
			continue
		}
		if own := either(find(before.Containers, c.Name), find(i.Pod.Spec.Containers, c.Name)); own != nil {
			now.Containers = append(now.Containers, *own)
		}
	}
	for _, c := range i.laid.Spec.InitContainers {
		if slices.Contains(was.InitContainers, c.Name) {
			continue
		}
		own := either(find(before.InitContainers, c.Name), find(i.Pod.Spec.Containers, c.Name), find(i.Pod.Spec.InitContainers, c.Name))
		if own != nil {
			now.InitContainers = append(now.InitContainers, *own)
		}
	}
	if err := i.override(now); err != nil {
		return err
	}
	if !noted && len(now.Containers)+len(now.InitContainers) > 0 {
		text, err := json.Marshal(now)
		if err != nil {
			return err
		}
		i.note(annotation.ProxyOverrides.Name, string(text))
	}
	i.sameUser()
	return nil
}

// either returns a copy of the first that is there, without an image that is to be found out.
func either(all ...*corev1.Container) *corev1.Container {
	for _, c := range all {
		if c != nil {
			c = c.DeepCopy()
			if c.Image == "auto" {
				c.Image = ""
			}
			return c
		}
	}
	return nil
}

// override lays containers over those of the same names.
func (i *injection) override(o overrides) error {
	for _, kind := range []corev1.PodSpec{{Containers: o.Containers}, {InitContainers: o.InitContainers}} {
		if kind.Containers == nil {
			kind.Containers = []corev1.Container{}
		}
		if len(kind.Containers)+len(kind.InitContainers) == 0 {
			if i.pod.Spec.Containers == nil {
				i.pod.Spec.Containers = kind.Containers
			}
			continue
		}
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{Spec: kind})
		if err != nil {
			return err
		}
		if i.pod, err = (&sheet{tree: tree, plain: true}).over(i.pod); err != nil {
			return fmt.Errorf("its own container %s: %w", proxyName, err)
		}
	}
	return nil
}

func (i *injection) note(name, value string) {
	if i.pod.Annotations == nil {
		i.pod.Annotations = map[string]string{}
	}
	i.pod.Annotations[name] = value
}

// sameUser has the container that redirects traffic heed another user of the proxy.
func (i *injection) sameUser() {
	own := proxyOf(i.Pod)
	if own == nil || own.SecurityContext == nil || own.SecurityContext.RunAsUser == nil && own.SecurityContext.RunAsGroup == nil {
		return
	}
	user, group := own.SecurityContext.RunAsUser, own.SecurityContext.RunAsGroup
	redirector := find(i.pod.Spec.InitContainers, initName)
	if redirector == nil {
		redirector = find(i.pod.Spec.InitContainers, validationName)
	}
	if redirector == nil {
		return
	}
	tproxy := i.Proxy.GetInterceptionMode() == mesh.ProxyConfig_TPROXY || i.pod.Annotations[modeNote] == "TPROXY"
	if proxy := proxyOf(i.pod); tproxy && user != nil && proxy != nil && proxy.SecurityContext != nil {
		root := int64(0)
		proxy.SecurityContext.RunAsUser = &root
	}
	if !tproxy && redirector.Name == validationName {
		if redirector.SecurityContext == nil {
			redirector.SecurityContext = &corev1.SecurityContext{}
		}
		if user != nil {
			redirector.SecurityContext.RunAsUser = user
		}
		if group != nil {
			redirector.SecurityContext.RunAsGroup = group
		}
	}
	if at := slices.Index(redirector.Args, "-u"); user != nil && *user != 0 && at >= 0 && at+1 < len(redirector.Args) {
		redirector.Args[at+1] = strconv.FormatInt(*user, 10)
	}
}
