package node

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// environment of a container, NAME=VALUE, in the order in which it names them.
func (p *pod) environment(is *corev1.Container) (env []string, err error) {
	for _, from := range is.EnvFrom {
		values, err := p.envFrom(from)
		if err != nil {
			return nil, err
		}
		env = append(env, values...)
	}
	for _, e := range is.Env {
		value, there := expand(e.Value, env), true
		if e.ValueFrom != nil {
			if value, there, err = p.envValue(is, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("env %s: %w", e.Name, err)
			}
		}
		if there {
			env = append(env, e.Name+"="+value)
		}
	}
	return env, nil
}

func (p *pod) envFrom(from corev1.EnvFromSource) (env []string, err error) {
	var values map[string]string
	there := true
	switch {
	case from.ConfigMapRef != nil:
		values, there = p.configMap(from.ConfigMapRef.Name)
		there = there || from.ConfigMapRef.Optional != nil && *from.ConfigMapRef.Optional
	case from.SecretRef != nil:
		values, there = p.secret(from.SecretRef.Name)
		there = there || from.SecretRef.Optional != nil && *from.SecretRef.Optional
	}
	if !there {
		return nil, fmt.Errorf("what envFrom names isn't there")
	}
	for k, v := range values {
		env = append(env, from.Prefix+k+"="+v)
	}
	slices.Sort(env)
	return env, nil
}

// envValue is a value that stands elsewhere, and whether it is there; if it has to be, an error
// says that it isn't.
func (p *pod) envValue(is *corev1.Container, from *corev1.EnvVarSource) (value string, there bool, err error) {
	var values map[string]string
	var key, of string
	var optional *bool
	switch {
	case from.FieldRef != nil:
		value, err = p.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = amount(is, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		key, of, optional = from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional
		values, _ = p.configMap(of)
	case from.SecretKeyRef != nil:
		key, of, optional = from.SecretKeyRef.Key, from.SecretKeyRef.Name, from.SecretKeyRef.Optional
		values, _ = p.secret(of)
	default:
		return "", false, fmt.Errorf("nothing here gives it a value")
	}
	value, there = values[key]
	if !there && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("%s has no %s", of, key)
	}
	return value, there, nil
}

var subscript = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']*)'\]$`)

// field is a field of the pod.
// Source: https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
func (p *pod) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return p.is.Name, nil
	case "metadata.namespace":
		return p.is.Namespace, nil
	case "metadata.uid":
		return string(p.is.UID), nil
	case "metadata.labels":
		return lines(p.is.Labels), nil
	case "metadata.annotations":
		return lines(p.is.Annotations), nil
	case "spec.nodeName":
		return p.is.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.is.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return Address, nil
	case "status.podIP", "status.podIPs":
		return p.is.Status.PodIP, nil
	}
	if m := subscript.FindStringSubmatch(path); m != nil {
		if m[1] == "labels" {
			return p.is.Labels[m[2]], nil
		}
		return p.is.Annotations[m[2]], nil
	}
	return "", fmt.Errorf("no field %s", path)
}

func lines(values map[string]string) string {
	var all []string
	for k, v := range values {
		all = append(all, k+"="+strconv.Quote(v))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// amount is what a container asks of the machine, or may take of it; the machine's own where it may
// take all.
func amount(is *corev1.Container, of *corev1.ResourceFieldSelector) (string, error) {
	kind, what, _ := strings.Cut(of.Resource, ".")
	from := is.Resources.Limits
	if kind == "requests" {
		from = is.Resources.Requests
	}
	q, there := from[corev1.ResourceName(what)]
	if !there {
		q = map[string]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}[what]
	}
	divisor := of.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if what == "cpu" {
		return strconv.FormatInt((q.MilliValue()+divisor.MilliValue()-1)/divisor.MilliValue(), 10), nil
	}
	return strconv.FormatInt((q.Value()+divisor.Value()-1)/divisor.Value(), 10), nil
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand replaces $(NAME) by the value of NAME, where it has one, and $$ by $.
func expand(text string, env []string) string {
	return reference.ReplaceAllStringFunc(text, func(m string) string {
		if m == "$$" {
			return "$"
		}
		for _, e := range slices.Backward(env) {
			if name, value, _ := strings.Cut(e, "="); name == m[2:len(m)-1] {
				return value
			}
		}
		return m
	})
}
