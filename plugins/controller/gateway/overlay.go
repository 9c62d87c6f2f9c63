package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// everything as a field of Config.Overrides is all fields.
const everything = "*"

// mostOverlay is how large an overlay may be, in bytes.
const mostOverlay = 64 << 10

// allowed are the fields that a Gateway's own ConfigMap may set, as KIND.PATH; what stands below
// one is allowed, too. An element of a list is PATH[NAME].
type allowed struct {
	fields []string
	all    bool
}

// listed are the fields that are always allowed.
var listed = []string{
	"deployment.metadata.labels", "deployment.metadata.annotations", "deployment.spec.replicas",
	"deployment.spec.template.metadata.labels", "deployment.spec.template.metadata.annotations",
	"deployment.spec.template.spec.containers[istio-proxy].resources", "deployment.spec.template.spec.containers[istio-proxy].image",
	"service.metadata.labels", "service.metadata.annotations", "service.spec.type",
	"serviceAccount.metadata.labels", "serviceAccount.metadata.annotations",
	"horizontalPodAutoscaler.metadata.labels", "horizontalPodAutoscaler.metadata.annotations", "horizontalPodAutoscaler.spec.minReplicas",
	"horizontalPodAutoscaler.spec.maxReplicas", "horizontalPodAutoscaler.spec.metrics", "horizontalPodAutoscaler.spec.behavior",
	"podDisruptionBudget.metadata.labels", "podDisruptionBudget.metadata.annotations", "podDisruptionBudget.spec.minAvailable",
	"podDisruptionBudget.spec.maxUnavailable", "podDisruptionBudget.spec.unhealthyPodEvictionPolicy",
}

// allow returns the listed fields and others.
func allow(others []string) allowed {
	if slices.Contains(others, everything) {
		return allowed{all: true}
	}
	return allowed{fields: slices.Concat(listed, others)}
}

// check says which field of an overlay is not allowed.
func (a allowed) check(path string, is any) error {
	if a.all || slices.Contains(a.fields, path) {
		return directives(path, is)
	}
	below := func(next string) error {
		return fmt.Errorf("%s may not be set by a Gateway's own ConfigMap: the control plane's setting overrides does not name it", next)
	}
	if !slices.ContainsFunc(a.fields, func(f string) bool {
		return strings.HasPrefix(f, path+".") || strings.HasPrefix(f, path+"[")
	}) {
		return below(path)
	}
	switch is := is.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(is)) {
			if err := a.check(path+"."+k, is[k]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, e := range is {
			m, _ := e.(map[string]any)
			name, ok := m["name"].(string)
			if !ok {
				return fmt.Errorf("%s: an element has no name", path)
			}
			for _, k := range slices.Sorted(maps.Keys(m)) {
				if k == "name" {
					continue
				}
				if err := a.check(path+"["+name+"]."+k, m[k]); err != nil {
					return err
				}
			}
			if !slices.ContainsFunc(a.fields, func(f string) bool { return strings.HasPrefix(f, path+"["+name+"].") }) {
				return below(path + "[" + name + "]")
			}
		}
		return nil
	}
	return below(path)
}

// directives refuses keys that say how to merge ($patch), below fields that are allowed: they would
// take away what is not.
func directives(path string, is any) error {
	switch is := is.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(is)) {
			if strings.HasPrefix(k, "$") {
				return fmt.Errorf("%s.%s: how to merge can't be said", path, k)
			}
			if err := directives(path+"."+k, is[k]); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range is {
			if err := directives(path, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads an overlay of a kind.
func read(text string) (map[string]any, error) {
	if len(text) > mostOverlay {
		return nil, fmt.Errorf("it has %d bytes; %d are the most", len(text), mostOverlay)
	}
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("it is no YAML of an object: %w", err)
	}
	return out, nil
}

// known refuses keys of a ConfigMap that are no kind's.
func known(overlays map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(overlays)) {
		if !slices.ContainsFunc(allParts(), func(s *part) bool { return s.overlay == k }) {
			return fmt.Errorf("key %q is none of deployment, service, serviceAccount, horizontalPodAutoscaler and podDisruptionBudget", k)
		}
	}
	return nil
}

// overlaid returns an object with what ConfigMaps lay over it; nil: none is asked for.
func (s *subject) overlaid(of *part, object any) (map[string]any, error) {
	content, err := of.asMap(object)
	if err != nil {
		return nil, err
	}
	before := content["metadata"].(map[string]any)
	asked := !of.asked
	for _, o := range []struct {
		what string
		from map[string]string
		may  allowed
	}{{"the ConfigMap of its class", s.class, allowed{all: true}}, {"its ConfigMap", s.own, s.allowed}} {
		if err := known(o.from); err != nil {
			return nil, fmt.Errorf("%s: %w", o.what, err)
		}
		text, ok := o.from[of.overlay]
		if !ok {
			continue
		}
		asked = true
		if content, err = lay(of, content, text, o.may); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", o.what, of.overlay, err)
		}
	}
	if !asked {
		return nil, nil
	}
	if err := s.same(of, before, content); err != nil {
		return nil, fmt.Errorf("%s: %w", of.overlay, err)
	}
	return content, nil
}

// lay lays an overlay over an object, as a strategic merge patch does.
func lay(of *part, content map[string]any, text string, may allowed) (map[string]any, error) {
	patch, err := read(text)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(patch)) {
		if v, ok := patch[k].(string); ok && (k == "apiVersion" && v == of.apiVersion() || k == "kind" && v == of.kind) {
			delete(patch, k)
			continue
		}
		if err := may.check(of.overlay+"."+k, patch[k]); err != nil {
			return nil, err
		}
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(of.typed())
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(deep(content), patch, meta)
	if err != nil {
		return nil, err
	}
	// By the types, values are written as the API server writes them, and wrong ones are found.
	under, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	typed := of.typed()
	if err := json.Unmarshal(under, typed); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%s: expected %s, got %s", wrong.Field, wrong.Type.Kind(), wrong.Value)
		}
		return nil, err
	}
	return of.asMap(typed)
}

// same refuses an object whose overlays have made another one of it.
func (s *subject) same(of *part, before, content map[string]any) error {
	after, _ := content["metadata"].(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(over2(before, after))) {
		if k != "labels" && k != "annotations" && !reflect.DeepEqual(before[k], after[k]) {
			return fmt.Errorf("metadata.%s can't be changed", k)
		}
	}
	own, _ := before["labels"].(map[string]any)
	labels := func(path string, all any) error {
		m, _ := all.(map[string]any)
		for _, k := range []string{nameLabel, classLabel, managedLabel} {
			if m[k] != own[k] {
				return fmt.Errorf("%s: %s can't be changed", path, k)
			}
		}
		return nil
	}
	if err := labels("metadata.labels", after["labels"]); err != nil {
		return err
	}
	spec, _ := content["spec"].(map[string]any)
	switch of {
	case services:
		t, _ := spec["type"].(string)
		return serves(corev1.ServiceType(t))
	case deployments:
		template, _ := spec["template"].(map[string]any)
		meta, _ := template["metadata"].(map[string]any)
		of, _ := meta["labels"].(map[string]any)
		if !s.allowed.all && of[injectLabel] != "false" {
			return fmt.Errorf("spec.template.metadata.labels: %s can't be changed", injectLabel)
		}
		return labels("spec.template.metadata.labels", meta["labels"])
	}
	return nil
}

func over2(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
