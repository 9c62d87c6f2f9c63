package kube_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {automountServiceAccountToken: false, containers: [{name: web, image: "web:1", ports: [{name: web, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: web}]}`

// TestRollout: pods of a Deployment and the slices that Kubernetes' own controllers make of them;
// while it grows, is replaced and shrinks, no request fails, and afterwards those pods answer that
// there are.
func TestRollout(t *testing.T) {
	w := newWorld(t, deployment, strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db"))
	w.nodes(t)
	stop := w.traffic(t)
	for _, step := range [][]string{
		{"scale", "deployment", "web", "--replicas", "4"},
		{"set", "image", "deployment/web", "web=web:2"},
		{"scale", "deployment", "web", "--replicas", "1"},
		{"rollout", "restart", "deployment/web"},
	} {
		w.cluster.Kubectl(t, append(step, "-n", "shop")...)
		w.cluster.Kubectl(t, "rollout", "status", "deployment/web", "-n", "shop", "--timeout", "60s")
		w.pods(t)
	}
	stop()
	w.cluster.Kubectl(t, "delete", "deployment", "web", "-n", "shop")
	w.answers(t, http.StatusServiceUnavailable, "")
}

// nodes plays what a cluster does of itself: pods of the deployment run, and are the service's.
func (w *world) nodes(t *testing.T) {
	t.Helper()
	var addresses []string
	for i := range 32 {
		addresses = append(addresses, fmt.Sprintf("10.244.1.%d", i+1))
		serve(t, w.pod, addresses[i])
	}
	w.cluster.Controllers(t)
	w.cluster.Kubelet(t, "one", addresses)
	w.answers(t, http.StatusOK, "")
}

// pods waits until each pod that isn't to go answers, and no other.
func (w *world) pods(t *testing.T) {
	t.Helper()
	wait.For(t, "the pods answer", func() error {
		want := strings.Fields(w.cluster.Kubectl(t, "get", "pods", "-n", "shop", "-o",
			"go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.status.podIP}} {{end}}{{end}}"))
		slices.Sort(want)
		var got []string
		for range 8 * len(want) {
			_, text, err := w.ask()
			if err != nil {
				return err
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			return fmt.Errorf("%v answer, not %v", got, want)
		}
		return nil
	})
}
