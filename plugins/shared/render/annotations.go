package render

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"istio.io/api/annotation"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checks are of annotations whose values templates use as they are.
var checks = map[string]func(string) error{
	annotation.SidecarInterceptionMode.Name:                   interception,
	annotation.SidecarStatusPort.Name:                         one(16),
	annotation.SidecarStatusReadinessInitialDelaySeconds.Name: one(32),
	annotation.SidecarStatusReadinessPeriodSeconds.Name:       one(32),
	annotation.SidecarStatusReadinessFailureThreshold.Name:    one(32),
	annotation.SidecarTrafficIncludeOutboundIPRanges.Name:     orAll(named("includeIPRanges", addresses)),
	annotation.SidecarTrafficExcludeOutboundIPRanges.Name:     named("excludeIPRanges", addresses),
	annotation.SidecarTrafficIncludeInboundPorts.Name:         orAll(named("includeInboundPorts", numbers)),
	annotation.SidecarTrafficExcludeInboundPorts.Name:         named("excludeInboundPorts", numbers),
	annotation.SidecarTrafficExcludeOutboundPorts.Name:        named("excludeOutboundPorts", numbers),
	annotation.SidecarTrafficExcludeInterfaces.Name:           devices,
	annotation.SidecarTrafficKubevirtInterfaces.Name:          devices,
	annotation.IoIstioRerouteVirtualInterfaces.Name:           devices,
	annotation.PrometheusMergeMetrics.Name:                    func(s string) error { _, err := strconv.ParseBool(s); return err },
	annotation.SidecarProxyCPU.Name:                           quantity,
	annotation.SidecarProxyMemory.Name:                        quantity,
	annotation.SidecarProxyCPULimit.Name:                      quantity,
	annotation.SidecarProxyMemoryLimit.Name:                   quantity,
}

// checkAnnotations says what is wrong with annotations.
func checkAnnotations(all map[string]string) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if check := checks[name]; check != nil {
			if err := check(all[name]); err != nil {
				wrong = append(wrong, fmt.Errorf("annotation %s: %q: %w", name, all[name], err))
			}
		}
	}
	return errors.Join(wrong...)
}

func interception(mode string) error {
	if slices.Contains([]string{"REDIRECT", "TPROXY", "NONE"}, mode) {
		return nil
	}
	return errors.New("it is none of REDIRECT, TPROXY and NONE")
}

// one checks a number of so many bits.
func one(bits int) func(string) error {
	return func(s string) error {
		_, err := strconv.ParseUint(strings.TrimSpace(s), 10, bits)
		return err
	}
}

// named has an error say which of Istio's settings is meant.
func named(name string, check func(string) error) func(string) error {
	return func(s string) error {
		if err := check(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}

func orAll(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "*" {
			return nil
		}
		return check(s)
	}
}

func addresses(list string) error {
	if list == "" {
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		if _, err := netip.ParsePrefix(s); err != nil {
			return err
		}
	}
	return nil
}

func numbers(list string) error {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		if err := one(16)(s); err != nil {
			return err
		}
	}
	return nil
}

var device = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,14}$`)

func devices(list string) error {
	if list == "" {
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		if !device.MatchString(strings.TrimSpace(s)) {
			return fmt.Errorf("%q is no name of a network interface", s)
		}
	}
	return nil
}

func quantity(s string) error {
	_, err := resource.ParseQuantity(s)
	return err
}
