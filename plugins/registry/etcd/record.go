package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// record is a key's value: an instance of a service, as JSON. The README says what the fields mean.
type record struct {
	Host      string `json:"host"`
	Namespace string `json:"namespace"`
	Address   string `json:"address"`
	// Port and Protocol are for instances of one port, Ports for others.
	Port           uint32            `json:"port"`
	Protocol       string            `json:"protocol"`
	Ports          []port            `json:"ports"`
	Weight         *uint32           `json:"weight"`
	Health         string            `json:"health"`
	Labels         map[string]string `json:"labels"`
	Locality       string            `json:"locality"`
	Network        string            `json:"network"`
	ServiceAccount string            `json:"serviceAccount"`
	Workload       string            `json:"workload"`
	// Service is what is said of the service.
	Service *about `json:"service"`
}

type port struct {
	Number     uint32 `json:"number"`
	Name       string `json:"name"`
	Protocol   string `json:"protocol"`
	TargetPort uint32 `json:"targetPort"`
}

// about is what an instance says of its service as a whole.
type about struct {
	Name            string            `json:"name"`
	Addresses       []string          `json:"addresses"`
	ExportTo        []string          `json:"exportTo"`
	SubjectAltNames []string          `json:"subjectAltNames"`
	Labels          map[string]string `json:"labels"`
	External        bool              `json:"external"`
}

// healths are the values of health.
var healths = map[string]pb.EndpointHealth{
	"": pb.EndpointHealthHealthy, "healthy": pb.EndpointHealthHealthy, "unhealthy": pb.EndpointHealthUnhealthy, "draining": pb.EndpointHealthDraining,
}

const (
	most = 65535
	// mostPorts an instance may have, and mostLabels.
	mostPorts, mostLabels = 100, 64
)

// read reads a record and fills in what is left out. Errors are *sdk.FieldError.
func read(key string, value []byte) (*record, error) {
	if !json.Valid(value) {
		var into any
		err := json.Unmarshal(value, &into)
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return nil, strict.Errorf("", "is no JSON: at byte %d: %v", at.Offset, err)
		}
		return nil, strict.Errorf("", "is no JSON: %v", err)
	}
	r := &record{Namespace: "default"}
	if err := strict.Decode(value, r); err != nil {
		return nil, err
	}
	if r.Workload == "" {
		r.Workload = path.Base(key)
	}
	return r, r.check()
}

func (r *record) check() error {
	switch {
	case r.Host == "":
		return strict.Errorf("host", "is missing")
	case !hosts.ValidName(r.Host, false):
		return strict.Errorf("host", "%q is not a DNS name", r.Host)
	case r.Namespace == "" || strings.Contains(r.Namespace, "/"):
		return strict.Errorf("namespace", "%q is none", r.Namespace)
	case r.Address == "":
		return strict.Errorf("address", "is missing")
	case r.Weight != nil && (*r.Weight == 0 || *r.Weight > most):
		return strict.Errorf("weight", "%d is not between 1 and %d; an instance that is to get no requests has the health \"draining\"", *r.Weight, most)
	case len(r.Labels) > mostLabels:
		return strict.Errorf("labels", "%d are more than %d", len(r.Labels), mostLabels)
	}
	r.Host = strings.ToLower(r.Host)
	if _, ok := healths[r.Health]; !ok {
		return strict.Errorf("health", "unknown value %q%s", r.Health, nearest.Suggest(r.Health, []string{"healthy", "unhealthy", "draining"}))
	}
	if p, ok := hosts.Path(r.Address); ok && p != "" {
		r.Address = hosts.Unix + p
	} else if !hosts.IsIP(r.Address) {
		return strict.Errorf("address", "%q is neither an IP address nor unix:PATH", r.Address)
	}
	if err := r.checkPorts(); err != nil || r.Service == nil {
		return err
	}
	for i, a := range r.Service.Addresses {
		short, ok := hosts.VirtualAddress(a)
		if !ok {
			return strict.Errorf(strict.At("service.addresses", i), "%q is neither an IP address nor a CIDR", a)
		}
		r.Service.Addresses[i] = short
	}
	return nil
}

// checkPorts has Ports say all.
func (r *record) checkPorts() error {
	if r.Port > 0 || r.Protocol != "" {
		if len(r.Ports) > 0 {
			return strict.Errorf("port", "stands beside ports; one of them says it all")
		}
		r.Ports = []port{{Number: r.Port, Protocol: r.Protocol}}
		r.Port, r.Protocol = 0, ""
		return checkPort("", &r.Ports[0])
	}
	if len(r.Ports) == 0 {
		return strict.Errorf("ports", "at least one is needed (or port)")
	}
	if len(r.Ports) > mostPorts {
		return strict.Errorf("ports", "%d are more than %d", len(r.Ports), mostPorts)
	}
	numbers, names := map[uint32]bool{}, map[string]bool{}
	for i := range r.Ports {
		p, at := &r.Ports[i], strict.At("ports", i)+"."
		if err := checkPort(at, p); err != nil {
			return err
		}
		if numbers[p.Number] {
			return strict.Errorf(at+"number", "%d is there twice", p.Number)
		}
		if names[p.Name] {
			return strict.Errorf(at+"name", "%q is there twice", p.Name)
		}
		numbers[p.Number], names[p.Name] = true, true
	}
	return nil
}

// checkPort checks one whose fields have this path, which is empty where they are the record's own.
func checkPort(at string, p *port) error {
	field := at + "number"
	if at == "" {
		field = "port"
	}
	if p.Number == 0 || p.Number > most {
		return strict.Errorf(field, "%d is not between 1 and %d", p.Number, most)
	}
	if p.TargetPort > most {
		return strict.Errorf(at+"targetPort", "%d is not between 1 and %d", p.TargetPort, most)
	}
	protocol := hosts.Protocol(p.Protocol)
	if protocol == "" && p.Protocol != "" {
		return strict.Errorf(at+"protocol", "unknown protocol %q; known are HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TCP, TLS, MONGO, REDIS, MYSQL, UDP", p.Protocol)
	}
	if p.Protocol = protocol; p.Name == "" {
		kind := strings.ToLower(protocol)
		if kind == "" {
			kind = "port"
		}
		p.Name = fmt.Sprintf("%s-%d", kind, p.Number)
	}
	if strings.Contains(p.Name, "/") {
		return strict.Errorf(at+"name", "%q holds a slash", p.Name)
	}
	return nil
}

// service is the key of the instance's service.
func (r *record) service() string { return sdk.ServiceKey(r.Namespace, r.Host) }

func (r *record) weight() uint32 {
	if r.Weight == nil {
		return 1
	}
	return *r.Weight
}
