package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// workload makes the row of a Pod; nil where it serves nobody: it has no address, or has ended.
func (c *Config) workload(p *corev1.Pod, n *corev1.Node) *pb.Workload {
	if p.Status.PodIP == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil && !ready(p) {
		return nil
	}
	out := &pb.Workload{
		Name: p.Name, Namespace: p.Namespace, Addresses: addresses(p), Labels: p.Labels, ServiceAccount: p.Spec.ServiceAccountName,
		Network: hosts.Network("", p.Labels), Locality: locality(p, n), Cluster: c.Cluster, Node: p.Spec.NodeName,
		TlsMode: hosts.TLSMode(p.Labels, ""), Ready: ready(p), Ports: map[string]uint32{},
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for _, port := range list[i].Ports {
				if port.Name != "" {
					out.Ports[port.Name] = uint32(port.ContainerPort)
				}
			}
		}
	}
	return out
}

func addresses(p *corev1.Pod) (out []string) {
	for _, ip := range p.Status.PodIPs {
		out = append(out, ip.IP)
	}
	if len(out) == 0 && p.Status.PodIP != "" {
		out = []string{p.Status.PodIP}
	}
	return out
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Labels of Nodes that say where they are; the older ones count where the newer are absent.
// Source: Kubernetes, "Well-known labels"; Istio, "Locality load balancing".
const (
	oldRegion = "failure-domain.beta.kubernetes.io/region"
	oldZone   = "failure-domain.beta.kubernetes.io/zone"
)

// locality is where a pod runs: as its label says, otherwise where its node is.
func locality(p *corev1.Pod, n *corev1.Node) string {
	if declared := hosts.Locality("", p.Labels); declared != "" || n == nil {
		return declared
	}
	label := func(keys ...string) string {
		for _, k := range keys {
			if v := n.Labels[k]; v != "" {
				return v
			}
		}
		return ""
	}
	region, zone := label(hosts.RegionLabel, oldRegion), label(hosts.ZoneLabel, oldZone)
	subzone := label(hosts.SubzoneLabel)
	if region == "" && zone == "" && subzone == "" {
		return ""
	}
	return strings.TrimRight(region+"/"+zone+"/"+subzone, "/")
}

// ownerOf is the name that telemetry knows a pod by: that of the Deployment, CronJob or other owner that made it.
func ownerOf(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return p.Name
	}
	switch hash := p.Labels["pod-template-hash"]; owner.Kind {
	case "ReplicaSet":
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
			return name
		}
	case "Job":
		if name, minute := cutLast(owner.Name); len(minute) == cronDigits && strings.Trim(minute, "0123456789") == "" {
			return name
		}
	}
	return owner.Name
}

// cronDigits is how many digits a CronJob puts behind its name: minutes since 1970.
const cronDigits = 8

func cutLast(name string) (before, after string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}
