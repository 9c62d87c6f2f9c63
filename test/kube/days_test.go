package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/line"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestBadDays: what befalls a cluster and those who read it, under requests and while pods come and
// go all the time. No request of an Envoy fails, and after each day the pods answer that there are.
func TestBadDays(t *testing.T) {
	t.Parallel()
	d := newDays(t)
	d.day("the registry is killed", func() {
		for range 3 {
			before := d.plane.Signal(t, "kubernetes", syscall.SIGKILL)
			wait.For(t, "it runs again", func() error {
				if now := d.plane.Plugins(t)["kubernetes"]; now.PID == before.PID || now.State != "serving" {
					return fmt.Errorf("it is %s", now.State)
				}
				return nil
			})
		}
	})
	d.day("the registry is swapped", func() {
		for range 3 {
			if out, err := exec.Command(program, "plugins", "restart", "kubernetes", "--addr", d.plane.HTTP).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	})
	d.day("a right is withdrawn", func() {
		d.without(1, "endpointslices", "[none]", "[endpointslices]")
	})
	d.day("pods are known later than slices", func() { // all pods are replaced by others that nobody knows
		d.without(0, "pods", "[services, nodes, namespaces]", "[services, pods, nodes, namespaces]")
	})
	d.day("an object is as large as they get", func() {
		// A megabyte of a thousand routes. For ten thousand short ones a busy API server needs more
		// than its minute.
		large, long := make([]string, 1000), strings.Repeat("x", 800)
		for i := range large {
			large[i] = fmt.Sprintf("{name: a-route-with-a-name-%d, match: [{uri: {prefix: /large/%d/%s}}], %s}", i, i, long, direct("large"))
		}
		d.cluster.Apply(t, fmt.Sprintf("{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: "+
			"large, namespace: shop}, spec: {hosts: [large.example], gateways: [edge], http: [%s]}}",
			strings.Join(large, ", ")))
		wait.For(t, "its last route counts", func() error {
			r, err := d.client.Get("http://large.example/large/999/" + long)
			if err != nil {
				return err
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("%s", r.Status)
			}
			return nil
		})
		d.cluster.Kubectl(t, "delete", "virtualservice", "large", "-n", "shop")
	})
	d.day("a definition is deleted", func() {
		d.cluster.Kubectl(t, "delete", "crd", "virtualservices.networking.istio.io")
		d.churned(5)
		d.logged("coxswain hold show crds")
		d.cluster.Apply(t, definitions(t)["VirtualService"])
		d.cluster.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
		d.cluster.Apply(t, gateway)
	})
	if need.Long() {
		d.longDays()
	}
}

// longDays are those that take long, or that the cluster's own controllers are slow to come back
// from.
func (d *days) longDays() {
	d.day("the API server is away", func() {
		d.cluster.Down()
		d.quiet()
		d.logged("the API server can't be reached")
		d.cluster.Up(d.t)
	})
	d.day("connections end, and what was missed is forgotten", func() {
		d.line.Cut()
		d.churned(10)
		d.cluster.Compact(d.t)
		d.cluster.Down()
		d.cluster.Up(d.t)
		d.cluster.Compact(d.t)
		d.line.Open()
	})
	d.day("connections stall", func() { // the client asks for signs of life, and gives up after 45 seconds
		d.line.Stall()
		d.quiet()
	})
}

// days are a world whose control plane has the rights of deploy/ and reaches the API server over a
// line that can be cut.
type days struct {
	*world
	t    *testing.T
	line *line.Line

	mu     sync.Mutex
	churns int
}

func newDays(t *testing.T) *days {
	t.Helper()
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace, node))
	c.Apply(t, documents(gateway, strings.Replace(deployment, "replicas: 2", "replicas: 4", 1),
		strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db")))
	c.Kubectl(t, "apply", "-k", deployed)
	d := &days{t: t, line: line.New(t, c.Address())}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig,
		strings.ReplaceAll(c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))), c.Address(), d.line.Address))

	d.world = &world{
		cluster: c, pod: netns.NewPod(t, "edge", "10.244.0.1"),
		plane: mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig),
	}
	d.plane.Ready(t)
	d.client = clientOf(d.pod)
	dir := folder(t)
	admin := "unix:" + filepath.Join(dir, "admin")
	envoy.InPod(t, d.pod, 1337, admin,
		d.plane.Bootstrap(t, "--xds", d.plane.Socket(t, filepath.Join(dir, "xds")), "--admin", admin, "--type", "router", "--name", "edge",
			"--namespace", "shop", "--ip", d.pod.Address, "--labels", "app=edge")).Ready(t)
	d.nodes(t)
	d.pods(t)
	return d
}

// day has something happen under requests, while pods come and go.
func (d *days) day(name string, happens func()) {
	d.t.Helper()
	d.t.Logf("%s: %s", time.Now().Format(time.TimeOnly), name)
	stop, rest := d.traffic(d.t), d.churn()
	happens()
	d.churned(3)
	rest()
	d.pods(d.t)
	stop()
}

// logged waits until the log says something.
func (d *days) logged(what string) {
	d.t.Helper()
	wait.For(d.t, "the log says "+what, func() error {
		if !strings.Contains(d.plane.Log(), what) {
			return fmt.Errorf("%s", d.plane.LastLines(5))
		}
		return nil
	})
}

// churn deletes the oldest pod again and again, each once the deployment is whole, until rest is
// called. What fails while the API server is away is tried again.
func (d *days) churn() (rest func()) {
	pods := d.cluster.Client(d.t).CoreV1().Pods("shop")
	ctx, end := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
			if err != nil || len(list.Items) != 4 {
				continue
			}
			whole := true
			for _, p := range list.Items {
				whole = whole && p.Status.PodIP != "" && p.DeletionTimestamp == nil
			}
			if whole && pods.Delete(ctx, oldest(list.Items), metav1.DeleteOptions{}) == nil {
				d.mu.Lock()
				d.churns++
				d.mu.Unlock()
			}
		}
	})
	d.t.Cleanup(func() { end(); ended.Wait() })
	return func() { end(); ended.Wait() }
}

func oldest(pods []corev1.Pod) (name string) {
	return slices.MinFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).Name
}

// churned waits until so many more pods were deleted.
func (d *days) churned(more int) {
	d.t.Helper()
	count := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.churns
	}
	until := count() + more
	wait.For(d.t, "pods come and go", func() error {
		if n := count(); n < until {
			return fmt.Errorf("%d of %d", n, until)
		}
		return nil
	})
}

// without takes the right to a kind's objects away while all pods are replaced: what a rule of the
// role says meanwhile, and then again.
func (d *days) without(rule int, kind, meanwhile, again string) {
	d.t.Helper()
	allow := func(resources string) {
		d.cluster.Kubectl(d.t, "patch", "clusterrole", "coxswain", "--type", "json", "-p",
			fmt.Sprintf("[{op: replace, path: /rules/%d/resources, value: %s}]", rule, resources))
	}
	allow(meanwhile)
	// A watch that begins before the API server knows of it would go on for minutes.
	wait.For(d.t, "the right is gone", func() error {
		if out := d.cluster.May(account, kind); out != "no" {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	d.line.Cut()
	d.line.Open()
	d.logged(fmt.Sprintf(`cannot list resource \"%s\"`, kind))
	d.replaced()
	allow(again)
}

// replaced waits until none of the pods is left that there are now.
func (d *days) replaced() {
	d.t.Helper()
	pods := func() string {
		return d.cluster.Kubectl(d.t, "get", "pods", "-n", "shop", "-l", "app=web", "-o", "name")
	}
	before := strings.Fields(pods())
	wait.For(d.t, "all pods are replaced", func() error {
		now := strings.Fields(pods())
		if at := slices.IndexFunc(before, func(name string) bool { return slices.Contains(now, name) }); at >= 0 {
			return fmt.Errorf("%s is there", before[at])
		}
		return nil
	})
}

// quiet is a minute in which nothing is to happen: the requests meanwhile are the test.
func (d *days) quiet() {
	d.t.Helper()
	select {
	case <-time.After(time.Minute):
	case <-d.t.Context().Done():
	}
}
