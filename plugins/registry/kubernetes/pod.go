package kubernetes

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// pod is what is kept of a Pod.
type pod struct {
	metav1.ObjectMeta // name, namespace, version, labels and whether it is being deleted
	// node it runs on, account that it runs as, and the name that telemetry knows it by.
	node, account, workload string
	// hostname and subdomain make its name below that of a headless service.
	hostname, subdomain string
	addresses           []string
	// ports by their names.
	ports map[string]uint32
	// ready as its condition says. failed and ended: it doesn't run any more.
	ready, failed, ended bool
}

// workload makes the row of a pod; nil where it serves nobody: it has no address, or has ended.
func (c *Config) workload(p *pod, n *corev1.Node) *pb.Workload {
	if len(p.addresses) == 0 || p.ended || p.failed || p.DeletionTimestamp != nil && !p.ready {
		return nil
	}
	return &pb.Workload{
		Name: p.Name, Namespace: p.Namespace, Addresses: p.addresses, Labels: p.Labels, ServiceAccount: p.account,
		Network: hosts.Network("", p.Labels), Locality: locality(p, n), Cluster: c.Cluster, Node: p.node,
		TlsMode: hosts.TLSMode(p.Labels, ""), Ready: p.ready && p.DeletionTimestamp == nil, Workload: p.workload, Ports: p.ports,
	}
}

// portsOf are the ports of a pod by their names.
func portsOf(p *corev1.Pod) map[string]uint32 {
	out := map[string]uint32{}
	for i, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for j := range list {
			if once := i == 1 && (list[j].RestartPolicy == nil || *list[j].RestartPolicy != corev1.ContainerRestartPolicyAlways); once {
				continue // it has ended before the pod serves
			}
			for _, port := range list[j].Ports {
				if _, known := out[port.Name]; port.Name != "" && !known {
					out[port.Name] = uint32(port.ContainerPort)
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
func locality(p *pod, n *corev1.Node) string {
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

// workloadName is the label that says how telemetry knows a pod.
const workloadName = "service.istio.io/workload-name"

// ownerOf is the name that telemetry knows a pod by: what its label says, otherwise that of the
// Deployment, CronJob or other owner that made it and chose its name. Source: Istio, "Resource
// labels"; Kubernetes, "Well-known labels".
func ownerOf(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	switch {
	case p.Labels[workloadName] != "":
		return p.Labels[workloadName]
	case owner == nil || p.GenerateName == "":
		return p.Name
	}
	switch owner.Kind {
	case "ReplicaSet":
		for _, label := range []string{"pod-template-hash", "rollouts-pod-template-hash"} {
			if name, ok := strings.CutSuffix(owner.Name, "-"+p.Labels[label]); ok && p.Labels[label] != "" {
				return name
			}
		}
	case "ReplicationController":
		return cmp.Or(p.Labels["deploymentconfig"], owner.Name)
	case "Job":
		if name, time := cutLast(owner.Name); len(time) >= cronDigits && len(time) <= cronDigits+2 && strings.Trim(time, "0123456789") == "" {
			return name
		}
	}
	return owner.Name
}

// cronDigits is how many digits a CronJob puts behind its name, and two less than it put there
// once: minutes or seconds since 1970.
const cronDigits = 8

func cutLast(name string) (before, after string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}
