package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe follows a container's probes until stop is called; up is called once it has started.
func (p *pod) probe(c *container, run *process, up func()) (stop func()) {
	ctx, cancel := context.WithCancel(p.ending)
	var ends sync.WaitGroup
	ends.Go(func() {
		if !p.until(ctx, c, c.is.StartupProbe, true) {
			return
		}
		p.mu.Lock()
		c.up = true
		p.mu.Unlock()
		up()
		p.changed()
		for want := true; p.until(ctx, c, c.is.ReadinessProbe, want); want = !want {
			p.mu.Lock()
			c.ready = want
			p.mu.Unlock()
			p.changed()
			if c.is.ReadinessProbe == nil {
				return
			}
		}
	})
	go func() { // of a process that has ended by itself
		select {
		case <-run.ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	return func() { cancel(); ends.Wait() }
}

// until waits until a probe says so as often as it has to, and reports whether it has.
func (p *pod) until(ctx context.Context, c *container, probe *corev1.Probe, want bool) bool {
	if probe == nil {
		return ctx.Err() == nil
	}
	needs := max(probe.SuccessThreshold, 1)
	if !want {
		if needs = probe.FailureThreshold; needs == 0 {
			needs = 3
		}
	}
	// It asks more often than a kubelet would, which says so at most a period later.
	period := min(time.Duration(max(probe.PeriodSeconds, 1))*time.Second, 250*time.Millisecond)
	if want {
		period = 50 * time.Millisecond
	}
	for row := int32(0); row < needs; {
		if p.passes(ctx, c, probe) == want {
			row++
		} else {
			row = 0
		}
		if row == needs {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(period):
		}
	}
	return ctx.Err() == nil
}

// passes asks once.
func (p *pod) passes(ctx context.Context, c *container, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.get(ctx, c.is, probe.HTTPGet) == nil
	case probe.TCPSocket != nil:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(p.ip.String(), portOf(c.is, probe.TCPSocket.Port)))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	case probe.Exec != nil:
		run, err := p.start(c.is, probe.Exec.Command, nil, nil, nil)
		if err != nil {
			return false
		}
		select {
		case <-run.ended:
		case <-ctx.Done():
			run.stop(0)
		}
		return run.code() == 0
	}
	return false // gRPC's isn't played, and says so by a pod that is never ready
}

func (p *pod) get(ctx context.Context, is *corev1.Container, probe *corev1.HTTPGetAction) error {
	scheme := "http"
	if probe.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	host := probe.Host
	if host == "" {
		host = p.ip.String()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, portOf(is, probe.Port))+probe.Path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "kube-probe/1")
	for _, h := range probe.HTTPHeaders {
		if h.Name == "Host" {
			r.Host = h.Value
			continue
		}
		r.Header.Set(h.Name, h.Value)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}).RoundTrip(r) // as a kubelet does
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("it says %s", answer.Status)
	}
	return nil
}

// portOf is a port's number, which may be named.
func portOf(is *corev1.Container, port intstr.IntOrString) string {
	if port.Type == intstr.String {
		for _, named := range is.Ports {
			if named.Name == port.StrVal {
				return strconv.Itoa(int(named.ContainerPort))
			}
		}
	}
	return port.String()
}
