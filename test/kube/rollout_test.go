package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/wait"
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

// TestRollout: pods of a Deployment and the slices that Kubernetes' own controllers make of them; while it grows, is replaced and shrinks, no request fails, and afterwards those
// pods answer that there are.
func TestRollout(t *testing.T) {
	w := newWorld(t, deployment, strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db"))
	var addresses []string
	for i := range 16 {
		addresses = append(addresses, fmt.Sprintf("10.244.1.%d", i+1))
		serve(t, w.pod, addresses[i])
	}
	w.cluster.Controllers(t)
	ctx, end := context.WithCancel(t.Context())
	var helpers sync.WaitGroup
	t.Cleanup(func() { end(); helpers.Wait() })
	helpers.Go(func() {
		if err := w.cluster.Kubelet(ctx, "one", addresses); err != nil {
			t.Errorf("the kubelet: %v", err)
		}
	})
	w.answers(t, http.StatusOK, "")

	asked, failed := 0, ""
	traffic, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for traffic.Err() == nil && failed == "" {
			asked++
			if code, text, err := w.ask(); err != nil || code != http.StatusOK {
				failed = fmt.Sprint(code, text, err)
			}
		}
	})
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
	asking.Wait()
	if failed != "" || asked < 100 {
		t.Errorf("%d requests, and then: %s", asked, failed)
	}
	w.cluster.Kubectl(t, "delete", "deployment", "web", "-n", "shop")
	w.answers(t, http.StatusServiceUnavailable, "")
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
