package render

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// timed are names of Jobs that a CronJob has made: they end with the minute.
var timed = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// Owner returns what a pod is part of, by who made it and how its name is made: the Deployment of
// a ReplicaSet, the CronJob of a Job; itself where nobody did.
func Owner(pod *corev1.Pod) (of types.NamespacedName, kind metav1.TypeMeta) {
	of = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	kind = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	maker := metav1.GetControllerOf(pod)
	if pod.GenerateName == "" || maker == nil {
		return of, kind
	}
	of.Name, kind = maker.Name, metav1.TypeMeta{APIVersion: maker.APIVersion, Kind: maker.Kind}
	without := func(label string) bool {
		hash := pod.Labels[label]
		name, ok := strings.CutSuffix(maker.Name, hash)
		if ok = ok && hash != ""; ok {
			of.Name = strings.TrimSuffix(name, "-")
		}
		return ok
	}
	switch maker.Kind {
	case "ReplicaSet":
		if without("pod-template-hash") {
			kind.Kind = "Deployment"
		} else if without("rollouts-pod-template-hash") {
			kind = metav1.TypeMeta{APIVersion: "v1alpha1", Kind: "Rollout"}
		}
	case "ReplicationController":
		if name := pod.Labels["deploymentconfig"]; name != "" {
			of.Name, kind.Kind = name, "DeploymentConfig"
		}
	case "Job":
		if m := timed.FindStringSubmatch(maker.Name); m != nil {
			of.Name, kind = m[1], metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}
		}
	}
	of.Name = cmp.Or(of.Name, pod.Name)
	return of, kind
}
