package serviceentry

import (
	"errors"
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
)

// checkEntry says what in a ServiceEntry can't be served. Rules: Istio API, ServiceEntry.
func checkEntry(se *networking.ServiceEntry) error {
	var errs []error
	if len(se.Hosts) == 0 {
		errs = append(errs, errors.New("hosts: at least one is needed"))
	}
	for i, h := range se.Hosts {
		if !hosts.ValidName(h, true) {
			errs = append(errs, fmt.Errorf("hosts[%d]: %q is not a DNS name, nor one that begins with `*.`", i, h))
		}
	}
	for i, a := range se.Addresses {
		if _, ok := hosts.VirtualAddress(a); !ok {
			errs = append(errs, fmt.Errorf("addresses[%d]: %q is neither an IP address nor a CIDR", i, a))
		}
	}
	errs = append(errs, checkPorts(se.Ports)...)
	errs = append(errs, checkResolution(se)...)
	for i, e := range se.Endpoints {
		if err := checkEndpoint(se, e); err != nil {
			errs = append(errs, fmt.Errorf("endpoints[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func checkPorts(ports []*networking.ServicePort) (errs []error) {
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for i, p := range ports {
		if p.Number == 0 || p.Number > 65535 {
			errs = append(errs, fmt.Errorf("ports[%d].number: %d is not between 1 and 65535", i, p.Number))
		}
		if p.TargetPort > 65535 {
			errs = append(errs, fmt.Errorf("ports[%d].targetPort: %d is not between 1 and 65535", i, p.TargetPort))
		}
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("ports[%d].name: %q is there twice", i, p.Name))
		}
		if numbers[p.Number] {
			errs = append(errs, fmt.Errorf("ports[%d].number: %d is there twice", i, p.Number))
		}
		names[p.Name], numbers[p.Number] = true, true
	}
	return errs
}

func checkResolution(se *networking.ServiceEntry) (errs []error) {
	if _, ok := networking.ServiceEntry_Resolution_name[int32(se.Resolution)]; !ok {
		errs = append(errs, fmt.Errorf("resolution: unknown value %d", se.Resolution))
	}
	if se.WorkloadSelector != nil && len(se.Endpoints) > 0 {
		errs = append(errs, errors.New("workloadSelector and endpoints exclude each other"))
	}
	if se.Resolution == networking.ServiceEntry_NONE && len(se.Endpoints) > 0 {
		errs = append(errs, errors.New("endpoints: none are possible with resolution NONE"))
	}
	if !resolvesByDNS(se.Resolution) || len(se.Endpoints) > 0 || se.WorkloadSelector != nil {
		return errs
	}
	for i, h := range se.Hosts {
		if strings.HasPrefix(h, "*") {
			errs = append(errs, fmt.Errorf("hosts[%d]: %q can't be resolved by DNS; give endpoints or resolution DYNAMIC_DNS", i, h))
		}
	}
	return errs
}

func checkEndpoint(se *networking.ServiceEntry, e *networking.WorkloadEntry) error {
	if err := workloadentry.CheckAddress(e); err != nil {
		return err
	}
	_, unix := hosts.Path(e.Address)
	switch {
	case unix && se.Resolution != networking.ServiceEntry_STATIC:
		return fmt.Errorf("address: Unix sockets need resolution STATIC, not %v", se.Resolution)
	case se.Resolution == networking.ServiceEntry_STATIC && !unix && e.Address != "" && !hosts.IsIP(e.Address):
		return fmt.Errorf("address: %q is no IP address, which resolution STATIC needs; resolution DNS takes names", e.Address)
	}
	for name, number := range e.Ports {
		if !hasPort(se, name) {
			return fmt.Errorf("ports: the service has no port %q", name)
		}
		if number > 65535 {
			return fmt.Errorf("ports.%s: %d is not between 1 and 65535", name, number)
		}
	}
	return nil
}

func hasPort(se *networking.ServiceEntry, name string) bool {
	for _, p := range se.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

func resolvesByDNS(r networking.ServiceEntry_Resolution) bool {
	return r == networking.ServiceEntry_DNS || r == networking.ServiceEntry_DNS_ROUND_ROBIN
}
