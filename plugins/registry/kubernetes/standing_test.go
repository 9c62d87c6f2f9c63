package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestStanding: a service isn't emptied where its slices are ahead of pods, or behind them. It is
// where they name nobody, or nobody comes for long.
func TestStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := rowsOf{}
		p, put := publishing(t, out)
		sliceOf := func(slice string, pods ...string) {
			t.Helper()
			var endpoints []string
			for _, name := range pods {
				endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.0.0.%s], targetRef: {kind: Pod, name: p%[1]s}}", name))
			}
			put(p.watched.slices, object[discoveryv1.EndpointSlice](t, `{metadata: {name: `+slice+`, namespace: a, labels: {kubernetes.io/service-name: web}},
  addressType: IPv4, ports: [{name: "", port: 80}], endpoints: [`+strings.Join(endpoints, ", ")+`]}`))
		}
		slice := func(pods ...string) {
			t.Helper()
			sliceOf("web", pods...)
		}
		pod := func(name string) *pod {
			return podOf(t, fmt.Sprintf("{metadata: {name: p%s, namespace: a}, status: {phase: Running, podIP: 10.0.0.%[1]s}}", name))
		}
		gone := func(i *informer, o any) {
			t.Helper()
			if err := i.GetStore().Delete(o); err != nil {
				t.Fatal(err)
			}
			p.changed(o)
		}
		want := func(what string, addresses ...string) {
			t.Helper()
			if err := p.publish(p.dirt.Drain()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, key := range out.keys(state.Endpoints) {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(key, "a/web.a.svc.cluster.local//10.0.0."), ":80"))
			}
			if !slices.Equal(got, addresses) {
				t.Errorf("%s: %q, not %q", what, got, addresses)
			}
		}
		web := object[corev1.Service](t, "{metadata: {name: web, namespace: a}, spec: {ports: [{port: 80}]}}")
		put(p.watched.services, web)
		slice("1", "2")
		want("pods that nobody knew")
		put(p.watched.pods, pod("1"))
		put(p.watched.pods, pod("2"))
		want("pods that are known", "1", "2")
		slice("3", "4")
		want("slices that are ahead", "1", "2")
		gone(p.watched.pods, pod("1"))
		want("slices that are ahead, still", "1", "2")
		put(p.watched.pods, pod("4"))
		want("one of the pods comes", "4")
		gone(p.watched.pods, pod("4"))
		want("slices that are behind", "4")
		time.Sleep(unknownPods - time.Second)
		want("slices that are behind, still", "4")
		slice("5")
		put(p.watched.pods, pod("5"))
		want("slices that have come", "5")
		passed := func() {
			time.Sleep(betweenSlices)
			synctest.Wait()
		}
		slice()
		want("slices that name nobody", "5")
		passed()
		want("slices that name nobody, still")
		slice("5")
		want("a pod again", "5")
		put(p.watched.pods, podOf(t, "{metadata: {name: p5, namespace: a}, status: {phase: Failed, podIP: 10.0.0.5}}"))
		want("a pod that failed", "5")
		passed()
		want("a pod that failed, still")
		put(p.watched.pods, pod("5"))
		want("one that didn't", "5")
		slice("6")
		want("nobody comes", "5")
		time.Sleep(unknownPods)
		synctest.Wait()
		want("nobody has come")
		slice("5")
		want("a pod once more", "5")
		slice()
		want("it has left one slice", "5")
		sliceOf("web-2", "5")
		want("it is in another", "5")
		passed()
		want("it is in another, still", "5")
		sliceOf("web-2")
		want("it has left that, too", "5")
		slice("7")
		want("one comes that isn't known", "5")
		passed()
		want("one comes that isn't known, still", "5")
		slice("5")
		want("a pod for the last time", "5")
		slice("7")
		want("slices that are ahead again", "5")
		gone(p.watched.services, web)
		want("the service is deleted")
	})
}
