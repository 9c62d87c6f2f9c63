package inject

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// review is a pod that both are asked about.
type review struct {
	// name says where the pod is from, path what is behind /inject.
	name, path string
	namespace  string
	pod        map[string]any
}

// body is what an API server sends.
func (r review) body(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816", "kind": map[string]any{"group": "", "version": "v1", "kind": "Pod"},
			"resource":  map[string]any{"group": "", "version": "v1", "resource": "pods"},
			"namespace": r.namespace, "operation": "CREATE", "object": r.pod, "dryRun": false,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reviews are of the pods of Istio's own examples and of those of testdata.
func reviews(t *testing.T) (all []review) {
	t.Helper()
	shared := filepath.Join(os.Getenv("COXSWAIN_SHARED"), "fixtures/inject")
	examples, _ := filepath.Glob(filepath.Join(shared, "*.yaml"))
	if len(examples) < 80 {
		need.Missing(t, "Istio's examples (COXSWAIN_SHARED/fixtures/inject)")
	}
	own, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range append(examples, own...) {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".iop.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, document := range strings.Split(string(text), "\n---") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, workloads(fmt.Sprintf("%s#%d", strings.TrimSuffix(name, ".yaml"), n), o)...)
		}
	}
	return all
}

// at returns what stands at a path of objects.
func at(o map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		o, _ = o[k].(map[string]any)
	}
	return o
}

// workloads are the reviews of an object's pods.
func workloads(name string, o map[string]any) (all []review) {
	if items, ok := o["items"].([]any); ok {
		for i, item := range items {
			m, _ := item.(map[string]any)
			all = append(all, workloads(fmt.Sprintf("%s.%d", name, i), m)...)
		}
		return all
	}
	kind, _ := o["kind"].(string)
	template := at(o, "spec", "template")
	switch kind {
	case "Pod":
		template = o
	case "CronJob":
		template = at(o, "spec", "jobTemplate", "spec", "template")
	}
	if at(template, "spec") == nil {
		return nil
	}
	of, _ := at(o, "metadata")["name"].(string)
	namespace, _ := at(o, "metadata")["namespace"].(string)
	if namespace == "" {
		namespace = "shop"
	}
	if own, _ := at(template, "metadata")["namespace"].(string); own != "" {
		namespace = own
	}
	path, _ := at(o, "metadata", "annotations")["test/path"].(string)
	return []review{{fmt.Sprintf("%s %s", name, kind+"/"+of), path, namespace, encoded(made(kind, of, template))}}
}

// encoded is a pod as an API server writes it: with the empty fields that its types have.
func encoded(pod map[string]any) map[string]any {
	typed := &corev1.Pod{}
	text, _ := json.Marshal(pod)
	if json.Unmarshal(text, typed) != nil {
		return pod
	}
	text, _ = json.Marshal(typed)
	out := map[string]any{}
	_ = json.Unmarshal(text, &out)
	delete(out, "status")
	return out
}

// made is a pod as the controller of a workload makes it of the template.
func made(kind, of string, template map[string]any) map[string]any {
	text, _ := json.Marshal(template)
	pod := map[string]any{}
	_ = json.Unmarshal(text, &pod)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	delete(pod, "status")
	if kind == "Pod" {
		return pod
	}
	meta := at(pod, "metadata")
	if meta == nil {
		meta = map[string]any{}
		pod["metadata"] = meta
	}
	labels := at(meta, "labels")
	if labels == nil {
		labels = map[string]any{}
		meta["labels"] = labels
	}
	maker, name, version := kind, of, "apps/v1"
	switch kind {
	case "Deployment":
		maker, name = "ReplicaSet", of+"-6d4cf56db6"
		labels["pod-template-hash"] = "6d4cf56db6"
	case "CronJob":
		maker, name, version = "Job", of+"-29401920", "batch/v1"
	case "Job":
		version = "batch/v1"
	case "DeploymentConfig":
		maker, name, version = "ReplicationController", of+"-1", "v1"
		labels["deploymentconfig"] = of
	case "ReplicationController":
		version = "v1"
	case "Rollout":
		maker, name = "ReplicaSet", of+"-75bd96b5"
		labels["rollouts-pod-template-hash"] = "75bd96b5"
	}
	delete(meta, "name")
	meta["generateName"] = name + "-"
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": version, "kind": maker, "name": name, "uid": "3f2a1b5e-3f4f-11ee-be56-0242ac120002", "controller": true, "blockOwnerDeletion": true,
	}}
	return pod
}
