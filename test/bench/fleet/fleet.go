package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Config of a fleet.
type Config struct {
	Address  string
	Sidecars int
	// Namespaces that they are spread over, unless each has the address of a service's endpoint.
	Namespaces int
	Own        Own
	// Pods that they run in, one each; empty: Namespaces and Own say where they are.
	Pods []Pod
	// Slow is the share of sidecars that wait a second before they read, 0 to 1. They don't count
	// for times.
	Slow float64
	// CA, Cert and Key are files in PEM; CA empty: plain text.
	CA, Cert, Key, ServerName string
	// Patience is the longest wait.
	Patience time.Duration
}

// fleet is what the sidecars share.
type fleet struct {
	config          Config
	sidecars        []*sidecar
	bytes, messages atomic.Int64
	broken, last    atomic.Int64
	wanted          atomic.Pointer[wanted]
	followed        atomic.Pointer[Followed]

	mu      sync.Mutex
	encoded map[string][]byte
}

// wanted is a response that is waited for.
type wanted struct {
	typ  string
	text []byte
	at   []atomic.Int64 // by sidecar, Unix nanoseconds
}

// Fleet is connected.
type Fleet struct {
	fleet
	started time.Time
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Arrival is how long it took until what was waited for had come: quantiles over the sidecars that
// are not slow.
type Arrival struct {
	P50, P99 time.Duration
	// Missing sidecars never had it.
	Missing         int
	Bytes, Messages int64
}

// Connect starts the sidecars, and returns when all that aren't slow are configured.
func Connect(ctx context.Context, c Config) (*Fleet, Arrival, error) {
	creds, err := c.credentials()
	if err != nil {
		return nil, Arrival{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Fleet{fleet: fleet{config: c, encoded: map[string][]byte{}}, started: time.Now(), cancel: cancel}
	for i := range c.Sidecars {
		n, err := c.node(i)
		if err != nil {
			cancel()
			return nil, Arrival{}, err
		}
		s := &sidecar{fleet: &f.fleet, id: i, node: n, slow: float64(i%10) < 10*c.Slow}
		conn, err := grpc.NewClient("passthrough:///"+c.Address, grpc.WithTransportCredentials(creds),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
			grpc.WithInitialWindowSize(window(s.slow)), grpc.WithInitialConnWindowSize(window(s.slow)))
		if err != nil {
			cancel()
			return nil, Arrival{}, err
		}
		f.sidecars = append(f.sidecars, s)
		f.running.Go(func() {
			defer conn.Close() //nolint:errcheck // it ends anyway
			s.run(ctx, conn)
		})
	}
	within(c.Patience, func() bool { return f.configured() == 0 })
	return f, f.connected(), nil
}

// window of a connection and its stream: Istio's agent has 1 MiB; one who reads slowly is not to
// have much in the kernel.
func window(slow bool) int32 {
	if slow {
		return 64 << 10
	}
	return 1 << 20
}

func (c Config) credentials() (credentials.TransportCredentials, error) {
	if c.CA == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", c.CA)
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: c.ServerName, MinVersion: tls.VersionTLS13}), nil
}

// configured returns how many of those that count are not.
func (f *Fleet) configured() (missing int) {
	for _, s := range f.sidecars {
		if !s.slow && s.ready.Load() == 0 {
			missing++
		}
	}
	return missing
}

func (f *Fleet) connected() Arrival {
	var times []time.Duration
	for _, s := range f.sidecars {
		if at := s.ready.Load(); !s.slow && at > 0 {
			times = append(times, time.Duration(at-f.started.UnixNano()))
		}
	}
	return f.arrival(times, f.configured(), 0, 0)
}

func (f *Fleet) arrival(times []time.Duration, missing int, bytes, messages int64) Arrival {
	a := Arrival{Missing: missing, Bytes: f.bytes.Load() - bytes, Messages: f.messages.Load() - messages}
	if slices.Sort(times); len(times) > 0 {
		a.P50, a.P99 = times[len(times)/2], times[len(times)*99/100]
	}
	return a
}

// Change makes a change, and returns when all sidecars that aren't slow have a response of a type
// (cds, eds, lds, rds) with a text in it.
func (f *Fleet) Change(typ, text string, change func() error) (Arrival, error) {
	w, err := f.want(typ, text)
	if err != nil {
		return Arrival{}, err
	}
	bytes, messages := f.bytes.Load(), f.messages.Load()
	defer f.wanted.Store(nil)
	began := time.Now()
	if err := change(); err != nil {
		return Arrival{}, err
	}
	missing := func() (n int) {
		for i := range w.at {
			if !f.sidecars[i].slow && w.at[i].Load() == 0 {
				n++
			}
		}
		return n
	}
	within(f.config.Patience, func() bool { return missing() == 0 })
	f.Rest(100 * time.Millisecond)
	var times []time.Duration
	for i := range w.at {
		if at := w.at[i].Load(); at > 0 {
			times = append(times, time.Duration(at-began.UnixNano()))
		}
	}
	return f.arrival(times, missing(), bytes, messages), nil
}

// First makes a change, and returns how long it took until a sidecar had a response of a type with
// a text in it.
func (f *Fleet) First(typ, text string, change func() error) (time.Duration, error) {
	w, err := f.want(typ, text)
	if err != nil {
		return 0, err
	}
	defer f.wanted.Store(nil)
	began := time.Now()
	if err := change(); err != nil {
		return 0, err
	}
	var first int64
	within(f.config.Patience, func() bool {
		for i := range w.at {
			if at := w.at[i].Load(); at > 0 && (first == 0 || at < first) {
				first = at
			}
		}
		return first > 0
	})
	if first == 0 {
		return 0, fmt.Errorf("nobody has %q after %v", text, f.config.Patience)
	}
	return time.Duration(first - began.UnixNano()), nil
}

// want has responses of a type looked through for a text.
func (f *Fleet) want(typ, text string) (*wanted, error) {
	url, ok := map[string]string{"cds": clusters, "eds": endpoints, "lds": listeners, "rds": routes}[typ]
	if !ok {
		return nil, errors.New("the type must be cds, eds, lds or rds")
	}
	w := &wanted{typ: url, text: []byte(text), at: make([]atomic.Int64, len(f.sidecars))}
	f.wanted.Store(w)
	return w, nil
}

// Concerns makes a change, waits until nothing has arrived for a time, and returns how many
// sidecars got anything, and how much.
func (f *Fleet) Concerns(change func() error, silence time.Duration) (sidecars int, a Arrival, err error) {
	before := make([]int64, len(f.sidecars))
	for i, s := range f.sidecars {
		before[i] = s.messages.Load()
	}
	bytes, messages := f.bytes.Load(), f.messages.Load()
	if err := change(); err != nil {
		return 0, Arrival{}, err
	}
	f.last.Store(time.Now().UnixNano())
	f.Rest(silence)
	for i, s := range f.sidecars {
		if s.messages.Load() != before[i] {
			sidecars++
		}
	}
	return sidecars, f.arrival(nil, 0, bytes, messages), nil
}

// Rest returns when nothing has arrived for a time.
func (f *Fleet) Rest(silence time.Duration) {
	within(f.config.Patience, func() bool { return time.Since(time.Unix(0, f.last.Load())) > silence })
}

// Received returns what all have got so far.
func (f *Fleet) Received() Arrival { return f.arrival(nil, 0, 0, 0) }

// Broken returns how many streams broke.
func (f *Fleet) Broken() int64 { return f.broken.Load() }

// Close ends all streams.
func (f *Fleet) Close() {
	f.cancel()
	f.running.Wait()
}

// within looks at a condition until it holds or the patience ends.
func within(patience time.Duration, holds func() bool) bool {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
