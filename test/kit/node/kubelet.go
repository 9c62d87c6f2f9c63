package node

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// listen opens the port at which an API server asks kubelets, and returns it. Whoever is in the
// tests' namespace may ask.
func (n *Node) listen(t testing.TB) int32 {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.servePorts)
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"http/1.1"}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // upgrades are HTTP/1's
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(Address)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// asked is the pod and the container of a request; it has answered where they aren't there.
func (n *Node) asked(w http.ResponseWriter, r *http.Request) (*pod, *container) {
	p := n.pod(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
		http.Error(w, "no such pod runs here", http.StatusNotFound)
		return nil, nil
	}
	name := r.PathValue("container")
	for _, c := range p.containers {
		if c.is.Name == name {
			return p, c
		}
	}
	if name != "" {
		http.Error(w, "the pod has no such container", http.StatusNotFound)
		return nil, nil
	}
	return p, nil
}

// serveLogs answers with what a container has said.
func (n *Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	p, c := n.asked(w, r)
	if c == nil {
		return
	}
	options, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	l, waits := c.logs, c.started.IsZero()
	if options.Previous {
		l = c.earlier
	}
	p.mu.Unlock()
	if l == nil || waits && !options.Previous {
		http.Error(w, "the container "+c.is.Name+" hasn't run", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	write(r.Context(), w, l, options)
}

// logOptions reads what pods/log is asked.
// Source: PodLogOptions of k8s.io/api
func logOptions(q url.Values) (o corev1.PodLogOptions, err error) {
	number := func(name string) *int64 {
		text := q.Get(name)
		if text == "" || err != nil {
			return nil
		}
		n, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil || n < 0 {
			err = fmt.Errorf("%s=%q", name, text)
		}
		return &n
	}
	o.Follow, o.Previous, o.Timestamps = q.Get("follow") == "true", q.Get("previous") == "true", q.Get("timestamps") == "true"
	o.TailLines, o.LimitBytes, o.SinceSeconds = number("tailLines"), number("limitBytes"), number("sinceSeconds")
	if since := q.Get("sinceTime"); since != "" && err == nil {
		at, wrong := time.Parse(time.RFC3339, since)
		o.SinceTime, err = &metav1.Time{Time: at}, wrong
	}
	return o, err
}

// write writes lines, and those that come where they are followed.
func write(ctx context.Context, w http.ResponseWriter, l *logs, o corev1.PodLogOptions) {
	var since time.Time
	if o.SinceTime != nil {
		since = o.SinceTime.Time
	}
	if o.SinceSeconds != nil {
		since = time.Now().Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	room := int64(1) << 62
	if o.LimitBytes != nil {
		room = *o.LimitBytes
	}
	lines, next, over, more := l.from(0)
	if o.TailLines != nil {
		lines = lines[max(0, len(lines)-int(min(*o.TailLines, kept))):]
	}
	out := bufio.NewWriter(w)
	for {
		for _, line := range lines {
			if line.at.Before(since) {
				continue
			}
			text := line.text
			if o.Timestamps {
				text = line.at.UTC().Format(time.RFC3339Nano) + " " + text
			}
			text = text[:min(int64(len(text)), room)]
			room -= int64(len(text))
			_, _ = out.WriteString(text)
		}
		_ = out.Flush()
		_ = http.NewResponseController(w).Flush()
		if !o.Follow || over || room == 0 {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
		lines, next, over, more = l.from(next)
	}
}

// streams are those of an upgraded connection, as they come: no more than 64 that nobody takes.
func streams(w http.ResponseWriter, r *http.Request, protocols ...string) (httpstream.Connection, <-chan httpstream.Stream, error) {
	if _, err := httpstream.Handshake(r, w, protocols); err != nil {
		return nil, nil, err
	}
	come := make(chan httpstream.Stream, 64)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied // before that nothing may be written
			select {
			case come <- s:
			default:
				_ = s.Reset()
			}
		}()
		return nil
	})
	if conn == nil {
		return nil, nil, fmt.Errorf("it can't be upgraded")
	}
	return conn, come, nil
}

// serveExec runs a program in a container.
// Source: k8s.io/client-go/tools/remotecommand, protocol v4.channel.k8s.io
func (n *Node) serveExec(w http.ResponseWriter, r *http.Request) {
	p, c := n.asked(w, r)
	if c == nil {
		return
	}
	q := r.URL.Query()
	if q.Get("tty") == "1" || q.Get("tty") == "true" {
		http.Error(w, "there are no terminals here", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	runs := c.process != nil
	p.mu.Unlock()
	if !runs {
		http.Error(w, "the container "+c.is.Name+" doesn't run", http.StatusInternalServerError)
		return
	}
	want := 1 // the stream of errors
	for _, name := range []string{"input", "output", "error"} {
		if v := q.Get(name); v == "1" || v == "true" {
			want++
		}
	}
	conn, come, err := streams(w, r, "v4.channel.k8s.io")
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	of := map[string]httpstream.Stream{}
	for len(of) < want {
		select {
		case s := <-come:
			of[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	said := of[corev1.StreamTypeError]
	if said == nil {
		return
	}
	text, err := json.Marshal(p.exec(c, q["command"], of, conn.CloseChan()))
	if err != nil {
		return
	}
	_, _ = said.Write(text)
	_ = said.Close()
	for _, s := range of {
		_ = s.Close()
	}
}

// exec runs a program beside a container's, to its end, and says how it ended.
func (p *pod) exec(c *container, command []string, of map[string]httpstream.Stream, closed <-chan bool) metav1.Status {
	var in io.Reader
	var out, errs io.Writer
	if s := of[corev1.StreamTypeStdin]; s != nil {
		in = s
	}
	if s := of[corev1.StreamTypeStdout]; s != nil {
		out = s
	}
	if s := of[corev1.StreamTypeStderr]; s != nil {
		errs = s
	}
	failed := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError}
	run, err := p.start(c.is, command, in, out, errs)
	if err != nil {
		failed.Message = err.Error()
		return failed
	}
	select {
	case <-run.ended:
	case <-closed:
		run.stop(0)
	case <-p.ending.Done():
		run.stop(time.Second)
	}
	if code := run.code(); code != 0 {
		failed.Reason, failed.Message = "NonZeroExitCode", fmt.Sprintf("command terminated with non-zero exit code: %d", code)
		failed.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(int(code))}}}
		return failed
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}

// servePorts carries connections to ports of a pod: each is a pair of streams with the same
// requestID, for its bytes and for what went wrong.
// Source: k8s.io/client-go/tools/portforward, protocol portforward.k8s.io
func (n *Node) servePorts(w http.ResponseWriter, r *http.Request) {
	p, _ := n.asked(w, r)
	if p == nil {
		return
	}
	conn, come, err := streams(w, r, "portforward.k8s.io")
	if err != nil {
		return
	}
	var carries sync.WaitGroup
	defer carries.Wait()
	defer func() { _ = conn.Close() }()
	halves := map[string]httpstream.Stream{}
	for {
		select {
		case s := <-come:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			other := halves[id]
			if other == nil {
				halves[id] = s
				continue
			}
			delete(halves, id)
			data, errs := s, other
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				data, errs = other, s
			}
			carries.Go(func() {
				if err := p.carry(r.Context(), data); err != nil {
					_, _ = io.WriteString(errs, err.Error())
				}
				_ = errs.Close()
				_ = data.Close()
				conn.RemoveStreams(data, errs)
			})
		case <-conn.CloseChan():
			return
		case <-p.ending.Done():
			return
		}
	}
}

// carry dials a port of the pod's loopback.
func (p *pod) carry(ctx context.Context, data httpstream.Stream) error {
	port := data.Headers().Get(corev1.PortHeader)
	to, err := p.ns.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("port %s: %s", port, strings.TrimPrefix(err.Error(), "dial "))
	}
	defer func() { _ = to.Close() }()
	var ends sync.WaitGroup
	ends.Go(func() {
		_, _ = io.Copy(to, data)
		if c, ok := to.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	})
	_, _ = io.Copy(data, to)
	_ = to.Close()
	_ = data.Reset()
	ends.Wait()
	return nil
}
