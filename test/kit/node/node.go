// Package node plays a machine of a Kubernetes cluster for tests, on an API server of test/kube: it
// binds pods to itself, as the scheduler would, runs them, as a kubelet would, and gives addresses
// to Services of type LoadBalancer, as a cloud would. There are no images: a table says which
// program stands for each.
//
// A pod is a network namespace on a bridge, with an address that every other pod and the test
// itself can dial. Each process of its containers sees the file system of this machine with the
// pod's volumes, its own /etc/hosts and /etc/resolv.conf, and its image's files in it. What is
// played: init containers and those that go on running, environment, volumes (Secret, ConfigMap,
// projected, downward API, emptyDir), probes of readiness and of starts, programs after a start,
// restarts, graceful deletion, names of services, logs, exec and port-forward. Limits of resources,
// liveness probes, programs before an end, host networks and terminals are not. What is between
// Services and pods (ClusterIPs) is, where Forward is called.
//
// Tests and servers share a network namespace of their own, which Main makes. A machine needs root,
// or a user namespace with more users than root, and iproute2.
package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Address is that of the machine itself, which pods dial for what tests listen on there. Pods have
// others of its network. Those that begin with Static are given to Services alone, where their
// loadBalancerIP asks for them.
const Address, Static = "10.244.0.1", "10.244.255."

const (
	name   = "machine"
	bridge = "pods"
	bits   = 16
)

// Main comes first in TestMain of a package that uses Start. All that the tests start is in a
// network namespace of their own.
func Main() {
	inside()
	netns.Main()
	netns.Within()
	if !netns.Apart() {
		return // Start says so
	}
	// The API server wants a way out with an address that isn't loopback's.
	for _, args := range [][]string{
		{"link", "add", "name", bridge, "type", "bridge"}, {"addr", "add", fmt.Sprintf("%s/%d", Address, bits), "dev", bridge},
		{"link", "set", "dev", bridge, "up"}, {"route", "add", "default", "dev", bridge},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip %s: %v: %s", strings.Join(args, " "), err, out) // which Start says, too
			return
		}
	}
}

// Image is what a container runs where its image's name says so.
type Image struct {
	// Entrypoint is the program with its first arguments, where the container has no command. Args
	// follow where it has none of its own.
	Entrypoint, Args []string
	// Env is the image's environment, NAME=VALUE. The container's comes after it.
	Env []string
	// Files of the image: for each path in it one of this machine.
	Files map[string]string
	// Prepare may change what is about to start, each time.
	Prepare func(*Process) error
}

// Process is about to start in a pod.
type Process struct {
	Pod       *corev1.Pod       // as it was bound, with its address in its status
	Container *corev1.Container // of which it is
	Args, Env []string
	Files     map[string]string // see Image
	// Dir is a folder of this machine that the pod's processes share, under the same path.
	Dir string
	// UID is who it runs as.
	UID uint32

	pod *pod
}

// Node is a machine.
type Node struct {
	log    func(format string, args ...any)
	client kubernetes.Interface
	images map[string]Image
	dir    string

	pods, services, secrets, configMaps cache.Store

	mu    sync.Mutex
	runs  map[types.UID]*pod
	next  netip.Addr
	free  []netip.Addr
	ended bool
	ends  sync.WaitGroup
	// forwards is nil until Forward is called.
	forwards *forwards
	dirty    chan struct{} // Services, or pods behind them, have changed
}

// Start starts one that belongs to the cluster of a kubeconfig. Images are found by their names
// without tag or digest. The test's end ends it and all that it started.
func Start(t testing.TB, kubeconfig string, images map[string]Image) *Node {
	t.Helper()
	netns.Rights(t)
	if !netns.Apart() {
		need.Missing(t, "no network namespaces here, which root has where the kernel allows them")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{
		log: t.Logf, client: client, images: images, dir: folder(t), runs: map[types.UID]*pod{},
		next: netip.MustParseAddr(Address), dirty: make(chan struct{}, 1),
	}
	port := n.listen(t)
	ctx, stop := context.WithCancel(context.Background())
	if err := n.register(ctx, port); err != nil {
		stop()
		t.Fatal(err)
	}
	n.follow(ctx)
	t.Cleanup(func() { stop(); n.end() })
	n.answerNames(t)
	return n
}

// folder is one whose path is short, because sockets stand in it, and which every user may enter.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "node-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// register makes the Node, ready, with the port of its kubelet.
func (n *Node) register(ctx context.Context, port int32) error {
	version, err := n.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	is := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
	if is, err = n.client.CoreV1().Nodes().Create(ctx, is, metav1.CreateOptions{}); err != nil {
		return err
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	is.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now()},
		},
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: Address}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: version.GitVersion, OperatingSystem: "linux", Architecture: "amd64"},
	}
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, is, metav1.UpdateOptions{})
	return err
}

// follow follows the cluster until the context ends.
func (n *Node) follow(ctx context.Context) {
	core := n.client.CoreV1().RESTClient()
	w := func(what string) *cache.ListWatch {
		return cache.NewListWatchFromClient(core, what, metav1.NamespaceAll, fields.Everything())
	}
	n.secrets = watch(ctx, &n.ends, w("secrets"), &corev1.Secret{}, func(o *corev1.Secret) { n.refresh(o.Namespace) }, func(*corev1.Secret) {})
	n.configMaps = watch(ctx, &n.ends, w("configmaps"), &corev1.ConfigMap{}, func(o *corev1.ConfigMap) { n.refresh(o.Namespace) }, func(*corev1.ConfigMap) {})
	n.services = watch(ctx, &n.ends, w("services"), &corev1.Service{}, func(*corev1.Service) { n.changed() }, func(*corev1.Service) { n.changed() })
	n.pods = watch(ctx, &n.ends, w("pods"), &corev1.Pod{}, func(o *corev1.Pod) { n.seen(ctx, o); n.changed() }, func(o *corev1.Pod) { n.gone(o); n.changed() })
	n.ends.Go(func() {
		for {
			select {
			case <-n.dirty:
				n.balance(ctx)
				n.forward()
			case <-ctx.Done():
				return
			}
		}
	})
}

// changed has Services looked at.
func (n *Node) changed() {
	select {
	case n.dirty <- struct{}{}:
	default:
	}
}

// watch keeps a store of objects, and tells of each that is there or has changed, and is gone.
func watch[T any](ctx context.Context, ends *sync.WaitGroup, from *cache.ListWatch, kind runtime.Object, there, gone func(T)) cache.Store {
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: from, ObjectType: kind, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { there(o.(T)) },
		UpdateFunc: func(_, o any) { there(o.(T)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			gone(o.(T))
		},
	}})
	ends.Go(func() { controller.Run(ctx.Done()) })
	return store
}

// seen does to a pod what a scheduler and a kubelet would.
func (n *Node) seen(ctx context.Context, o *corev1.Pod) {
	switch {
	case o.Spec.NodeName == "" && o.DeletionTimestamp == nil && len(o.Spec.SchedulingGates) == 0:
		to := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: name}}
		if err := n.client.CoreV1().Pods(o.Namespace).Bind(ctx, to, metav1.CreateOptions{}); err != nil &&
			ctx.Err() == nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
			n.log("%s/%s isn't bound: %v", o.Namespace, o.Name, err)
		}
	case o.Spec.NodeName == name:
		n.mu.Lock()
		defer n.mu.Unlock()
		p := n.runs[o.UID]
		if p == nil && !n.ended && o.Status.Phase != corev1.PodSucceeded && o.Status.Phase != corev1.PodFailed {
			p = n.begin(o)
		}
		if p != nil && o.DeletionTimestamp != nil {
			p.end(time.Duration(*o.DeletionGracePeriodSeconds) * time.Second)
		}
	}
}

// gone ends at once what is left of a pod that isn't there anymore.
func (n *Node) gone(o *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.runs[o.UID]; p != nil {
		p.end(0)
	}
}

// end ends all pods, and waits until nothing of them is left.
func (n *Node) end() {
	n.mu.Lock()
	n.ended = true
	for _, p := range n.runs {
		p.end(0)
	}
	n.mu.Unlock()
	n.ends.Wait()
}

// address is one for a pod, that which was freed first where all were used.
func (n *Node) address() (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if next := n.next.Next(); !strings.HasPrefix(next.String(), Static) {
		n.next = next
		return next, nil
	}
	if len(n.free) == 0 {
		return netip.Addr{}, fmt.Errorf("all addresses of %s are used", name)
	}
	a := n.free[0]
	n.free = n.free[1:]
	return a, nil
}

// pod is one that runs, by its name; nil: there is none.
func (n *Node) pod(namespace, name string) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.runs {
		if p.is.Namespace == namespace && p.is.Name == name {
			return p
		}
	}
	return nil
}

// Stopped waits until no pod runs.
func (n *Node) Stopped(t testing.TB) {
	t.Helper()
	wait.For(t, "no pod runs", func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.runs) > 0 {
			return fmt.Errorf("%d run", len(n.runs))
		}
		return nil
	})
}
