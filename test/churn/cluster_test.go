package churn

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const (
	// namespaces that services are spread over, and nodes that pods are.
	namespaces, nodes = 10, 20
	// writers write at once.
	writers = 16
)

// population are the services of a cluster with their pods, of which some are replaced all the
// time. The first pod of each service stays: sidecars run there.
type population struct {
	client   *kubernetes.Clientset
	services []*members
	// next pod's number, which makes its name and its address.
	next int
	// turn says which pod is replaced next.
	turn int
}

// members are a service's pods, by their numbers, and its slice.
type members struct {
	name, namespace string
	pods            []int

	mu    sync.Mutex
	slice *discoveryv1.EndpointSlice
}

// populate makes nodes, namespaces, services, pods and slices.
func populate(t *testing.T, c *kube.Cluster, services, pods int) *population {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	p := &population{}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range nodes {
		labels := map[string]string{corev1.LabelTopologyRegion: "eu", corev1.LabelTopologyZone: fmt.Sprintf("eu-%d", i%3)}
		_, err := p.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: labels}}, metav1.CreateOptions{})
		check(err)
	}
	for i := range namespaces {
		_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}, metav1.CreateOptions{})
		check(err)
	}
	for i := range services {
		p.services = append(p.services, &members{name: fmt.Sprintf("service-%04d", i), namespace: namespaceOf(i)})
	}
	for i := range pods {
		of := p.services[i%services]
		of.pods = append(of.pods, i)
	}
	p.next = pods
	check(each(p.services, func(int) {}, func(m *members) error { return p.make(ctx, m) }))
	return p
}

func nodeName(i int) string    { return fmt.Sprintf("node-%02d", i%nodes) }
func namespaceOf(i int) string { return fmt.Sprintf("ns-%02d", i%namespaces) }

// each calls f with all, with some at once, each after before, and returns the first error.
func each[T any](all []T, before func(i int), f func(T) error) (first error) {
	var running sync.WaitGroup
	var mu sync.Mutex
	next := make(chan T)
	for range writers {
		running.Go(func() {
			for one := range next {
				if err := f(one); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	for i, one := range all {
		before(i)
		next <- one
	}
	close(next)
	running.Wait()
	return first
}

// make makes a service, its pods and its slice.
func (p *population) make(ctx context.Context, m *members) error {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Namespace: m.namespace, Labels: map[string]string{"app": m.name}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": m.name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	if _, err := p.client.CoreV1().Services(m.namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.name + "-1", Namespace: m.namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: m.name, discoveryv1.LabelManagedBy: "test"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, n := range m.pods {
		if err := p.pod(ctx, m, n); err != nil {
			return err
		}
		slice.Endpoints = append(slice.Endpoints, m.endpoint(n))
	}
	var err error
	m.slice, err = p.client.DiscoveryV1().EndpointSlices(m.namespace).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// pod makes a pod that runs.
func (p *population) pod(ctx context.Context, m *members, n int) error {
	mounts := []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/token", ReadOnly: true}}
	pod, err := p.client.CoreV1().Pods(m.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.pod(n), Namespace: m.namespace, GenerateName: m.name + "-5c689d88bb-", Labels: m.labels(),
			Annotations: map[string]string{
				"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["istio-envoy","istio-data"]}`,
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: m.name + "-5c689d88bb", UID: "1", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName(n),
			Containers: []corev1.Container{
				{Name: "server", Image: "example.com/server", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, VolumeMounts: mounts},
				{Name: "istio-proxy", Image: "example.com/proxy", Env: []corev1.EnvVar{{Name: "PILOT_CERT_PROVIDER", Value: "istiod"}}, VolumeMounts: mounts},
			},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address(n), PodIPs: []corev1.PodIP{{IP: address(n)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	_, err = p.client.CoreV1().Pods(m.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (m *members) pod(n int) string { return fmt.Sprintf("%s-5c689d88bb-%06d", m.name, n) }

func (m *members) labels() map[string]string {
	return map[string]string{"app": m.name, "version": "v1", "pod-template-hash": "5c689d88bb", "security.istio.io/tlsMode": "istio"}
}

func (m *members) endpoint(n int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{address(n)}, NodeName: new(nodeName(n)), Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: m.pod(n), Namespace: m.namespace},
	}
}

func address(n int) string { return fmt.Sprintf("10.%d.%d.%d", 128+n>>16, n>>8&255, n&255) }

// sidecars are pods that stay.
func (p *population) sidecars(n int) (out []fleet.Pod) {
	for i := range n {
		m := p.services[i*len(p.services)/n]
		out = append(out, fleet.Pod{Name: m.pod(m.pods[0]), Namespace: m.namespace, Address: address(m.pods[0]), Labels: m.labels()})
	}
	return out
}

// replacement of a pod: which of a service's goes, and the number of the one that comes.
type replacement struct {
	of       *members
	at, gone int
	comes    int
	wrote    time.Time // just before its slice was written
}

// replacements plans n of them: the pods of a service go after each other, in all services at once.
func (p *population) replacements(n int) (out []*replacement) {
	for range n {
		of := p.services[p.turn%len(p.services)]
		at := 1 + p.turn/len(p.services)%(len(of.pods)-1)
		out = append(out, &replacement{of: of, at: at, gone: of.pods[at], comes: p.next})
		of.pods[at] = p.next
		p.next++
		p.turn++
	}
	return out
}

// replace replaces pods at a rate, or as fast as the API server takes it.
func (p *population) replace(ctx context.Context, plan []*replacement, rate int) error {
	began := time.Now()
	pace := func(i int) { time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))) }
	return each(plan, pace, func(r *replacement) error { return p.one(ctx, r) })
}

// one replaces a pod: it is deleted, another one is made and runs, and the slice has that in its
// place.
func (p *population) one(ctx context.Context, r *replacement) error {
	m := r.of
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := p.client.CoreV1().Pods(m.namespace).Delete(ctx, m.pod(r.gone), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return err
	}
	if err := p.pod(ctx, m, r.comes); err != nil {
		return err
	}
	m.slice.Endpoints[r.at] = m.endpoint(r.comes)
	r.wrote = time.Now()
	slice, err := p.client.DiscoveryV1().EndpointSlices(m.namespace).Update(ctx, m.slice, metav1.UpdateOptions{})
	if err == nil {
		m.slice = slice
	}
	return err
}
