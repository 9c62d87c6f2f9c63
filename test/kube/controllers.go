package kube

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Controllers starts a controller manager with the controllers that make pods of deployments and
// slices of services, and with flags in addition. The test's end stops it.
func (c *Cluster) Controllers(t testing.TB, flags ...string) {
	t.Helper()
	c.flags = flags
	_, port, err := net.SplitHostPort(wait.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	c.controllers = program.Start(t, command(programs(t), "kube-controller-manager", append([]string{
		"--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", filepath.Join(c.dir, "controllers"), "--controllers",
		"deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller,namespace-controller",
	}, flags...)...))
}

// Client talks to the cluster as its administrator, as fast as the cluster answers.
func (c *Cluster) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Kubelet does to pods what a node would until the test ends: one that is new is bound to the node,
// and runs at once at the next of the addresses, which answer before and after; one that is to go
// is gone, and its address is free. While the API server is away it tries again.
func (c *Cluster) Kubelet(t testing.TB, node string, addresses []string) {
	t.Helper()
	k := &kubelet{client: c.Client(t), node: node, addresses: addresses}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			k.run(ctx, t)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

type kubelet struct {
	client    kubernetes.Interface
	node      string
	addresses []string
}

// run follows the pods until the watch ends.
func (k *kubelet) run(ctx context.Context, t testing.TB) {
	changes, err := k.client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			return // the watch has failed
		}
		if err := k.pod(ctx, e.Type, p); err != nil && ctx.Err() == nil && !errors.IsNotFound(err) && !errors.IsConflict(err) { // then another event comes
			t.Logf("the kubelet: %v", err)
			return
		}
	}
}

func (k *kubelet) pod(ctx context.Context, event watch.EventType, p *corev1.Pod) error {
	pods := k.client.CoreV1().Pods(p.Namespace)
	switch {
	case event == watch.Deleted:
		if p.Status.PodIP != "" {
			k.addresses = append(k.addresses, p.Status.PodIP)
		}
	case p.DeletionTimestamp != nil:
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	case p.Spec.NodeName == "":
		return pods.Bind(ctx,
			&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.node}},
			metav1.CreateOptions{})
	case p.Status.PodIP == "":
		if len(k.addresses) == 0 {
			return fmt.Errorf("no address is free for %s", p.Name)
		}
		ip := k.addresses[0]
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
			return err
		}
		k.addresses = k.addresses[1:]
	}
	return nil
}
