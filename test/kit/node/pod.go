package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// pod is one that runs.
type pod struct {
	node *Node
	is   *corev1.Pod // as it was first seen; with its address once it has one
	dir  string
	ns   *netns.Pod
	ip   netip.Addr

	// ending is done once it is to end, gone once nothing of it is left.
	ending context.Context
	cancel context.CancelFunc
	gone   chan struct{}
	dirty  chan struct{} // its status is to be written

	mu         sync.Mutex
	grace      time.Duration
	containers []*container // in the order of their starts
	why        string       // why nothing has started yet
	refused    string       // why nothing ever will
	volumes    map[string]string
	static     map[string]bool // addresses that services gave to it
}

// begin starts a pod. The caller holds the node's lock.
func (n *Node) begin(o *corev1.Pod) *pod {
	p := &pod{
		node: n, is: o.DeepCopy(), dir: filepath.Join(n.dir, string(o.UID[:8])+"-"+o.Name),
		gone: make(chan struct{}), dirty: make(chan struct{}, 1), why: "ContainerCreating",
		grace: 30 * time.Second, volumes: map[string]string{}, static: map[string]bool{},
	}
	p.ending, p.cancel = context.WithCancel(context.Background())
	for i := range p.is.Spec.InitContainers {
		p.containers = append(p.containers, newContainer(&p.is.Spec.InitContainers[i], true))
	}
	for i := range p.is.Spec.Containers {
		p.containers = append(p.containers, newContainer(&p.is.Spec.Containers[i], false))
	}
	n.runs[o.UID] = p
	n.ends.Go(func() {
		defer close(p.gone)
		p.run()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.runs, o.UID)
		if p.ip.IsValid() {
			n.free = append(n.free, p.ip)
		}
	})
	return p
}

// end ends it; what runs has so long for that, less where another call says so.
func (p *pod) end(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grace = min(p.grace, grace)
	if p.ending.Err() != nil && grace == 0 {
		for _, c := range p.containers {
			c.kill()
		}
	}
	p.cancel()
}

// run is the pod's life.
func (p *pod) run() {
	var tells sync.WaitGroup
	told, done := context.WithCancel(context.Background())
	tells.Go(func() { p.tell(told) })
	if err := p.prepare(); err != nil {
		if p.ending.Err() == nil {
			p.mu.Lock()
			p.refused = err.Error()
			p.mu.Unlock()
			p.changed()
		}
	} else {
		p.live()
	}
	<-p.ending.Done()
	if p.ns != nil {
		p.ns.Close()
	}
	_ = os.RemoveAll(p.dir)
	done()
	tells.Wait()
	err := p.node.client.CoreV1().Pods(p.is.Namespace).Delete(context.Background(), p.is.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.is.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !p.node.closing() {
		p.node.log("%s/%s isn't gone: %v", p.is.Namespace, p.is.Name, err)
	}
}

// prepare makes its folder, network and volumes.
func (p *pod) prepare() error {
	if p.is.Spec.HostNetwork {
		return fmt.Errorf("no pod here has the machine's network")
	}
	if err := os.MkdirAll(filepath.Join(p.dir, "root"), 0o755); err != nil {
		return err
	}
	shared := filepath.Join(p.dir, "shared")
	if err := os.Mkdir(shared, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		return err
	}
	ip, err := p.node.address()
	if err != nil {
		return err
	}
	ns, err := netns.New(p.is.Name, ip.String())
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.ns, p.ip = ns, ip
	p.is.Status.PodIP, p.is.Status.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	p.is.Status.HostIP, p.is.Status.HostIPs = Address, []corev1.HostIP{{IP: Address}}
	p.mu.Unlock()
	p.changed()
	if err := ns.Attach(bridge, bits, Address); err != nil {
		return err
	}
	if err := p.sysctls(); err != nil {
		return err
	}
	if err := p.names(); err != nil {
		return err
	}
	return p.fill()
}

// sysctls sets those of the pod. As with containerd, anybody may listen on ports below 1024.
func (p *pod) sysctls() (err error) {
	all := []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	if s := p.is.Spec.SecurityContext; s != nil {
		all = append(all, s.Sysctls...)
	}
	p.ns.In(func() {
		for _, s := range all {
			if !strings.HasPrefix(s.Name, "net.") {
				err = errors.Join(err, fmt.Errorf("%s isn't the pod's own", s.Name))
				continue
			}
			err = errors.Join(err, os.WriteFile("/proc/sys/"+strings.ReplaceAll(s.Name, ".", "/"), []byte(s.Value), 0))
		}
	})
	return err
}

// names writes what tells a pod its own name and who knows others.
func (p *pod) names() error {
	for name, text := range map[string]string{
		"hostname":    p.host() + "\n",
		"hosts":       fmt.Sprintf("127.0.0.1\tlocalhost\n::1\tlocalhost\n%s\t%s\n", p.ip, p.host()),
		"resolv.conf": fmt.Sprintf("nameserver %s\nsearch %[2]s.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", Address, p.is.Namespace),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) host() string {
	name := p.is.Spec.Hostname
	if name == "" {
		name = p.is.Name
	}
	return name[:min(len(name), 63)]
}

// live starts the containers and waits until all have ended.
func (p *pod) live() {
	var lives sync.WaitGroup
	defer lives.Wait()
	for _, c := range p.containers {
		begun := make(chan struct{})
		lives.Go(func() { p.keep(c, begun) })
		switch {
		case c.init:
			p.because("PodInitializing")
		case !c.hooked():
			continue
		}
		select {
		case <-begun: // it has ended well, or it goes on and has started
		case <-p.ending.Done():
			return
		}
	}
	p.because("ContainerCreating")
}

func (p *pod) because(why string) {
	p.mu.Lock()
	p.why = why
	p.mu.Unlock()
	p.changed()
}

// changed has its status written.
func (p *pod) changed() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// tell writes its status whenever it has changed.
func (p *pod) tell(ctx context.Context) {
	last := ""
	p.changed()
	for {
		select {
		case <-p.dirty:
		case <-ctx.Done():
			return
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.is.UID}, "status": p.status()})
		if err != nil {
			p.node.log("the status of %s/%s: %v", p.is.Namespace, p.is.Name, err)
			continue
		}
		if string(text) == last {
			continue
		}
		_, err = p.node.client.CoreV1().Pods(p.is.Namespace).Patch(ctx, p.is.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
		switch {
		case err == nil:
			last = string(text)
		case ctx.Err() != nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		default: // the API server may be away
			select {
			case <-time.After(100 * time.Millisecond):
				p.changed()
			case <-ctx.Done():
			}
		}
	}
}

func (n *Node) closing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}
