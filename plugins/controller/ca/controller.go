package ca

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// settle is how long the directory of a CA must be quiet before it is read.
	settle = 100 * time.Millisecond
	// retryFirst and retryMost bound the pause after which what failed is tried again.
	retryFirst, retryMost = time.Second, time.Minute
)

// Controller is the certificate authority.
type Controller struct {
	config  Config
	plugged plugged
	keeper  keeper
	client  *kube.Client // nil without a cluster

	// signs is what signs now; first is closed when there is one.
	signs atomic.Pointer[signer]
	first chan struct{}
	// changed has something when the roots have changed since they were handed out.
	changed chan struct{}
}

// signer is an authority in its mesh. It is immutable.
type signer struct {
	*authority.Authority
	// domains are the mesh's trust domain and its aliases.
	domains []string
}

func newController(c Config) *Controller {
	return &Controller{config: c, plugged: plugged(c.Plugged), first: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// Run implements sdk.Controller.
func (c *Controller) Run(ctx context.Context, out sdk.Publisher) error {
	if _, _, err := kube.FirstState(ctx, out); err != nil {
		return nil
	}
	w, err := watch.New(settle, c.plugged.concerns)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if c.config.Distribute {
		c.config.Report(ctx, out)
		running.Go(func() { c.distribute(ctx, out) })
	}
	wake := make(chan struct{})
	running.Go(func() { follow(ctx, out, wake) })
	w.Wake(wake)
	l := &life{Controller: c, out: out, pause: retryFirst}
	for {
		s, _ := out.State()
		l.domains = domainsOf(s)
		wait := l.look(ctx)
		l.watch(w)
		if _, err := w.Next(ctx, time.Now().Add(wait)); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// follow sends to wake when the state has changed.
func follow(ctx context.Context, out sdk.Publisher, wake chan<- struct{}) {
	for {
		_, newer := out.State()
		select {
		case <-newer:
		case <-ctx.Done():
			return
		}
		select {
		case wake <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// domainsOf are the trust domains of the mesh's settings.
func domainsOf(s *state.State) []string {
	mesh := &api.MeshConfig{}
	if row := s.Row(state.Mesh, state.Mesh); row != nil {
		if read, err := kinds.Decode[*api.MeshConfig](row); err == nil { // no config source publishes another one
			mesh = read
		}
	}
	return istio.TrustDomains(mesh.TrustDomain, mesh.TrustDomainAliases)
}

// life is one Run's.
type life struct {
	*Controller
	out     sdk.Publisher
	domains []string
	// kept is the CA that the keeper has, until next; last is the one that it had last.
	kept, last *authority.Authority
	next       time.Time
	// published is the domain whose row there is; wrong is what was said last to be wrong.
	published, wrong string
	synced           bool
	pause            time.Duration
}

// look finds out what signs now, and returns when to look again.
func (l *life) look(ctx context.Context) (again time.Duration) {
	now := time.Now()
	a, wait, err := l.current(ctx, now)
	if ctx.Err() != nil {
		return 0
	}
	if err == nil {
		err = l.take(a)
	}
	if err != nil {
		if text := err.Error(); text != l.wrong {
			l.out.Log(sdk.Warn, "the CA can't be had as it should be; what signed before goes on, and it is tried again", "error", text)
			l.wrong = text
		}
		l.pause = min(2*l.pause, retryMost)
		return l.pause
	}
	l.wrong, l.pause = "", retryFirst
	return wait
}

// current returns the CA that is to sign: the one that is plugged in, or one that signs itself.
func (l *life) current(ctx context.Context, now time.Time) (a *authority.Authority, wait time.Duration, err error) {
	a, err = l.plugged.read(now)
	if !errors.Is(err, errNone) {
		return a, jitter(l.config.Root.Check, rand.Float64()), err
	}
	if l.kept != nil && now.Before(l.next) {
		return l.kept, l.next.Sub(now), nil
	}
	if l.kept, err = l.own(ctx, now); err != nil {
		return nil, 0, err
	}
	l.last = l.kept
	wait = jitter(l.config.Root.Check, rand.Float64())
	l.next = now.Add(wait)
	return l.kept, wait, nil
}

// own returns the CA that signs itself: the one that is kept, or a new one, or its next root.
func (l *life) own(ctx context.Context, now time.Time) (*authority.Authority, error) {
	const tries = 5
	for range tries {
		a, err := l.attempt(ctx, now)
		if !errors.Is(err, errTaken) {
			return a, err
		}
	}
	return nil, fmt.Errorf("%s: %w, again and again", l.keeper, errTaken)
}

// attempt is one try of own.
func (l *life) attempt(ctx context.Context, now time.Time) (*authority.Authority, error) {
	files, err := l.keeper.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.keeper, err)
	}
	var a *authority.Authority
	word := "a CA that signs itself is made"
	switch {
	case files == nil && l.last != nil:
		a, word = l.last, "the CA was gone from where it is kept; it is put back"
	case files == nil:
		a, err = authority.Root(l.domains[0], nil, l.config.Root.Bits, l.config.Root.TTL, now)
	default:
		if a, err = authority.Parse(*files, now); err != nil {
			return nil, fmt.Errorf("%s: %w", l.keeper, err)
		}
		if !a.IsRoot() || now.Before(a.Due(l.config.Root.Grace)) {
			return a, nil
		}
		word = "the CA has its next root certificate, with the same key"
		a, err = a.Renewed(l.config.Root.TTL, now)
	}
	if err != nil {
		return nil, err
	}
	made, err := a.Encode()
	if err != nil {
		return nil, err
	}
	if err := l.keeper.save(ctx, made); err != nil {
		return nil, fmt.Errorf("%s: %w", l.keeper, err)
	}
	l.out.Log(sdk.Info, word, "kept", l.keeper.String(), "until", a.Certificate.NotAfter.UTC().Format(time.RFC3339))
	return a, nil
}

// take has a CA sign from now on, and publishes its roots.
func (l *life) take(a *authority.Authority) error {
	was := l.signs.Load()
	if was != nil && was.Same(a) && l.published == l.domains[0] && slices.Equal(was.domains, l.domains) {
		return nil
	}
	b := bundle.Bundle{TrustDomain: l.domains[0], Certificates: a.Bundle()}
	payload, err := b.Payload()
	if err != nil {
		return err
	}
	if err := l.write(b.Certificates); err != nil {
		return err
	}
	var gone []string
	if l.published != "" && l.published != b.TrustDomain {
		gone = []string{l.published}
	}
	if err := l.out.Update(bundle.Table, []*sdk.Row{{Key: b.TrustDomain, Payload: payload, Source: "controller/ca"}}, gone); err != nil {
		return err
	}
	l.published = b.TrustDomain
	l.signs.Store(&signer{a, l.domains})
	select {
	case l.changed <- struct{}{}:
	default:
	}
	if !l.synced {
		l.synced = true
		close(l.first)
		return l.out.Synced()
	}
	l.out.Log(sdk.Info, "another CA signs from now on", "subject", a.Certificate.Subject.String(), "until", a.Certificate.NotAfter.UTC().Format(time.RFC3339), "roots", len(a.Roots))
	return nil
}

// write writes the roots to the file that is to have them, whole.
func (l *life) write(roots []string) error {
	path := l.config.RootsFile
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(strings.Join(roots, "")), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// watch watches the directory of a CA that is plugged in, or the nearest one above it that is there.
func (l *life) watch(w *watch.Watcher) {
	if l.config.Plugged == "" {
		return
	}
	w.Sweep()
	for dir := filepath.Clean(l.config.Plugged); ; dir = filepath.Dir(dir) {
		if w.Add(dir) == nil || dir == filepath.Dir(dir) {
			return
		}
	}
}
