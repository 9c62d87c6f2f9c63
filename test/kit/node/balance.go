package node

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// balance gives Services of type LoadBalancer the addresses of their ready pods, which are dialled
// at the Service's own ports: only where these are the pods' own, too, does anybody answer. One
// that asks for an address by loadBalancerIP has that, if it begins with Static, and a pod of it
// has it, too; no other address is ever given.
func (n *Node) balance(ctx context.Context) {
	for _, o := range n.services.List() {
		s := o.(*corev1.Service)
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Spec.Selector) == 0 || s.DeletionTimestamp != nil {
			continue
		}
		var has []corev1.LoadBalancerIngress
		for _, p := range n.behind(s) {
			if asked := s.Spec.LoadBalancerIP; asked != "" {
				if !strings.HasPrefix(asked, Static) || len(has) > 0 {
					continue
				}
				if err := p.take(asked); err != nil {
					n.log("%s/%s: %v", s.Namespace, s.Name, err)
					continue
				}
				has = append(has, corev1.LoadBalancerIngress{IP: asked})
				continue
			}
			has = append(has, corev1.LoadBalancerIngress{IP: p.ip.String()})
		}
		if len(has) == 0 && len(s.Status.LoadBalancer.Ingress) > 0 {
			continue // a balancer's address stays while nobody is behind it
		}
		next := s.DeepCopy()
		next.Status.LoadBalancer.Ingress = has
		if equality.Semantic.DeepEqual(s.Status.LoadBalancer.Ingress, has) {
			continue
		}
		if _, err := n.client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil &&
			ctx.Err() == nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
			n.log("%s/%s has no address: %v", s.Namespace, s.Name, err)
		}
	}
}

// behind are the ready pods of a service, by address.
func (n *Node) behind(s *corev1.Service) (all []*pod) {
	selects := labels.SelectorFromSet(s.Spec.Selector)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.runs {
		if p.is.Namespace == s.Namespace && selects.Matches(labels.Set(p.is.Labels)) && p.serves() {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pod) int { return a.ip.Compare(b.ip) })
	return all
}

// serves reports whether it is ready.
func (p *pod) serves() bool {
	for _, c := range p.status().Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// take gives the pod one more address.
func (p *pod) take(address string) error {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.static[a.String()] {
		return nil
	}
	if err := p.ns.IP("addr", "add", a.String()+"/32", "dev", "eth0"); err != nil {
		return err
	}
	p.static[a.String()] = true
	return nil
}
