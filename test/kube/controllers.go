package kube

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/wait"
)

// Controllers starts a controller manager with the controllers that make pods of deployments and slices of services. The test's end stops it.
func (c *Cluster) Controllers(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(wait.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	start(t, command(programs(t), "kube-controller-manager", "--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", filepath.Join(c.dir, "controllers"), "--controllers", "deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller,namespace-controller"))
}

// Kubelet does to pods what a node would: one that is new is bound to the node, and runs at once at the next of the addresses, which answer before and after; one that is to go is gone.
// It returns after ctx.
func (c *Cluster) Kubelet(ctx context.Context, node string, addresses []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	changes, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == watch.Deleted {
			continue
		}
		own := client.CoreV1().Pods(p.Namespace)
		switch {
		case p.DeletionTimestamp != nil:
			err = own.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		case p.Spec.NodeName == "":
			err = own.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
		case p.Status.PodIP == "":
			ip := addresses[0]
			addresses = addresses[1:]
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_, err = own.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		}
		if err != nil && ctx.Err() == nil && !errors.IsNotFound(err) && !errors.IsConflict(err) { // then another event comes
			return err
		}
	}
	return nil
}
