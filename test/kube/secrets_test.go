package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// manySecrets is how many there are, each as large as a certificate with its chain and key.
const manySecrets, secretSize = 5000, 8 << 10

// secretsOf makes as many Secrets, whose names begin alike. Each has a key with a text of that
// size.
func secretsOf(t *testing.T, c *kube.Cluster, prefix string, labels map[string]string, text []byte) {
	t.Helper()
	client := c.Client(t).CoreV1().Secrets("istio-system")
	names, failed := make(chan string), make(chan error, 1)
	var makers sync.WaitGroup
	for range 8 {
		makers.Go(func() {
			for name := range names {
				data := map[string][]byte{name: append(bytes.Repeat([]byte("#\n"), secretSize/2), text...)}
				if _, err := client.Create(context.Background(),
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data},
					metav1.CreateOptions{}); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for n := range manySecrets {
		names <- fmt.Sprintf("%s-%04d", prefix, n)
	}
	close(names)
	makers.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

// TestManySecrets: Secrets that name no cluster cost nothing; of 5000 that do, there are as many
// instances as the entry says, and nothing of them stays in memory; no request fails meanwhile, nor
// when all go at once.
func TestManySecrets(t *testing.T) {
	need.All(t)
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, service, strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db")))
	other.Apply(t, documents(namespace, node, service, pod("web-1", second), slice("web-1", second)))
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	w := newPlane(t, c, config, local, strings.Replace(remotes, "wait: 5s", "wait: 5s, max: 2", 1), secrets)
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	c.Apply(t, documents(pod("web-1", first), slice("web-1", first)))
	w.answers(t, http.StatusOK, first)
	stop := w.traffic(t)

	// With the race detector what is known of each cluster takes some 6 KB; its Secret would take
	// that and more.
	before := w.plane.Plugins(t)["clusters"].Memory
	grown := func(what string) {
		t.Helper()
		wait.For(t, what+": memory that is given back", func() error { // when the plugin rests
			if now, most := w.plane.Plugins(t)["clusters"].Memory, before+manySecrets*secretSize; now > most {
				return fmt.Errorf("%d bytes, %d at first", now, before)
			}
			return nil
		})
	}
	secretsOf(t, c, "certificate", nil, nil)
	grown("without the label")

	secretsOf(t, c, "cluster", map[string]string{"istio/multiCluster": "true"}, []byte(other.Remote(t, "")))
	wait.For(t, "each is a row", func() error {
		if n := w.plane.Plugins(t)["clusters"].Rows; n != manySecrets {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	grown("with the label")
	w.answers(t, http.StatusOK, second)
	instances := 0
	for name := range w.plane.Plugins(t) {
		if strings.HasPrefix(name, "remote@") {
			instances++
		}
	}
	if instances != 2 {
		t.Errorf("there are %d instances", instances)
	}

	c.Kubectl(t, "delete", "secrets", "-n", "istio-system", "-l", "istio/multiCluster=true", "--wait=false")
	w.answers(t, http.StatusOK, first)
	stop()
}
