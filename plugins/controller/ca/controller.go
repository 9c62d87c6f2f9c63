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

	"github.com/coxswain-mesh/coxswain/internal/replace"
	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
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
	nodes   nodes
	others  others
	counts  sdk.Counts
	// claims are roots that it may overwrite; reported is what people are shown.
	claims   *claims
	reported reported

	// signs is what signs now; first is closed when there is one.
	signs atomic.Pointer[signer]
	first chan struct{}
	// changed has something when the roots have changed since they were handed out.
	changed chan struct{}
}

// others are those who sign in this CA's place; nil where they don't.
type others struct {
	requests *requests
	server   *server
}

// signer is who signs in a mesh. It is immutable.
type signer struct {
	certifier
	// port makes the secure port's own certificate; nil: who signs for workloads does.
	port certifier
	// domains are the mesh's trust domain and its aliases.
	domains []string
	// lists are the revocation lists; nil: there are none.
	lists *authority.Lists
}

// of is who signs for a caller.
func (s *signer) of(call sdk.Call) certifier {
	if call.Core && s.port != nil {
		return s.port
	}
	return s.certifier
}

// believed are the roots that workloads believe: those of workloads, by which the core believes
// clients, and those of the secure port.
func (s *signer) believed() []string {
	roots := slices.Clone(s.bundle())
	if s.port == nil {
		return roots
	}
	return append(roots, slices.DeleteFunc(slices.Clone(s.port.bundle()), func(r string) bool { return slices.Contains(roots, r) })...)
}

func (s *signer) same(as *signer) bool {
	if as == nil || (s.port == nil) != (as.port == nil) || s.port != nil && !s.port.same(as.port) {
		return false
	}
	return s.certifier.same(as.certifier) && s.lists.Same(as.lists) && slices.Equal(s.domains, as.domains)
}

func newController(c Config) *Controller {
	replaced, _ := fingerprints(c.ReplaceRoots) // checked
	return &Controller{
		config: c, claims: &claims{replaced: replaced}, plugged: plugged(c.Plugged),
		nodes: nodes{trusted: c.External.Agents}, first: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// Run implements sdk.Controller.
func (c *Controller) Run(ctx context.Context, out sdk.Publisher) error {
	if _, _, err := kube.FirstState(ctx, out); err != nil {
		return nil
	}
	w, err := watch.New(settle, c.concerns)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	c.reported.out = out
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { c.counts.Report(ctx, out) })
	if c.config.Distribute != nowhere {
		c.config.Report(ctx, out)
		running.Go(func() { c.distribute(ctx, out) })
	}
	if c.others.requests != nil {
		c.others.requests.log = out.Log
		running.Go(func() { c.others.requests.sweep(ctx) })
	}
	wake := make(chan struct{})
	running.Go(func() { follow(ctx, out, wake) })
	w.Wake(wake)
	l := &life{Controller: c, out: out, pause: retryFirst}
	for {
		s, _ := out.State()
		l.mesh, _ = kinds.Mesh(s) // no config source publishes settings that can't be read
		c.nodes.saw(s)
		l.watch(w) // before it is read: what changes meanwhile is seen
		wait := l.look(ctx)
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

// life is one Run's.
type life struct {
	*Controller
	out  sdk.Publisher
	mesh *api.MeshConfig
	kept kept
	crl  crl
	// published is the domain whose row there is; wrong is what was said last to be wrong.
	published, wrong string
	// synced: what is published is complete.
	synced bool
	pause  time.Duration
}

// kept is the CA that signs itself.
type kept struct {
	// now is the one that the keeper has, until next; last is the one that it had last.
	now, last *authority.Authority
	next      time.Time
}

// look finds out who signs now, and returns when to look again.
func (l *life) look(ctx context.Context) (again time.Duration) {
	next, wait, err := l.current(ctx, time.Now())
	if ctx.Err() != nil {
		return 0
	}
	if err == nil {
		err = l.admit(ctx, next)
	}
	if ctx.Err() != nil {
		return 0
	}
	if err == nil {
		err = l.adopt(next)
	}
	if err != nil {
		if text := err.Error(); text != l.wrong {
			l.complain(err)
			l.wrong = text
		}
		l.pause = min(2*l.pause, retryMost)
		return l.pause
	}
	l.wrong, l.pause = "", retryFirst
	return wait
}

// complain says what is wrong. Where that is what the cluster has, and nothing was signed yet, it
// is shown, too: rows count once they are complete. What may be over in a moment is in the log
// alone.
func (l *life) complain(err error) {
	text := err.Error()
	var foreign *foreignError
	if l.signs.Load() != nil || !errors.As(err, &foreign) {
		l.out.Log(sdk.Warn, "the CA can't be had as it should be; what signed before goes on, and it is tried again", "error", text)
		return
	}
	l.out.Log(sdk.Error, "the CA is stopped: nothing is signed, and the secure port has no certificate; xDS goes on, and it is tried again", "error", text)
	if err = l.reported.stop(text); err == nil && !l.synced {
		l.synced = true
		err = l.out.Synced()
	}
	if err != nil {
		l.out.Log(sdk.Warn, "why the CA is stopped can't be shown", "error", err.Error())
	}
}

// admit reports, as an error, that somebody else's root stands in the way of who is to sign.
func (l *life) admit(ctx context.Context, next *signer) error {
	if next.same(l.signs.Load()) {
		return nil
	}
	return l.unclaimed(ctx, next.believed())
}

// current returns who is to sign: others, the CA that is plugged in, or one that signs itself.
func (l *life) current(ctx context.Context, now time.Time) (s *signer, wait time.Duration, err error) {
	s = &signer{domains: istio.TrustDomains(l.mesh.TrustDomain, l.mesh.TrustDomainAliases)}
	wait = jitter(l.config.Root.Check, rand.Float64())
	if port := l.config.External.PortSigner; port != "" {
		if s.port, err = l.others.requests.certifier(port, "", l.mesh); err != nil {
			return nil, 0, err
		}
	}
	switch l.config.External.By {
	case byKubernetes:
		s.certifier, err = l.others.requests.certifier(l.config.External.Signer, l.config.External.Domain, l.mesh)
	case byServer:
		s.certifier, err = l.others.server.certifier()
	default:
		var a *authority.Authority
		if a, err = l.plugged.read(now); err == nil {
			s.lists = l.revoked(a, now)
			if s.lists != nil && s.lists.Until.After(now) { // its end is noticed
				wait = min(wait, s.lists.Until.Sub(now)+time.Second)
			}
		} else if errors.Is(err, errNone) {
			a, wait, err = l.mine(ctx, now, s.domains[0])
		}
		s.certifier = self{a}
	}
	return s, wait, err
}

// mine returns the CA that signs itself, and how long it is to be left alone.
func (l *life) mine(ctx context.Context, now time.Time, domain string) (a *authority.Authority, wait time.Duration, err error) {
	wait = jitter(l.config.Root.Check, rand.Float64())
	k := &l.kept
	if k.now != nil && now.Before(k.next) {
		return k.now, k.next.Sub(now), nil
	}
	if k.last == nil { // none has signed yet
		if err := l.free(ctx); err != nil {
			return nil, 0, err
		}
	}
	if k.now, err = l.own(ctx, now, domain); err != nil {
		return nil, 0, err
	}
	k.last, k.next = k.now, now.Add(wait)
	return k.now, wait, nil
}

// own returns the CA that signs itself: the one that is kept, or a new one, or its next root.
func (l *life) own(ctx context.Context, now time.Time, domain string) (*authority.Authority, error) {
	const tries = 5
	for range tries {
		a, err := l.attempt(ctx, now, domain)
		if !errors.Is(err, errTaken) {
			return a, err
		}
	}
	return nil, fmt.Errorf("%s: %w, again and again", l.keeper, errTaken)
}

// attempt is one try of own.
func (l *life) attempt(ctx context.Context, now time.Time, domain string) (*authority.Authority, error) {
	files, err := l.keeper.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.keeper, err)
	}
	var a *authority.Authority
	word := "a CA that signs itself is made"
	switch {
	case files == nil && l.kept.last != nil:
		a, word = l.kept.last, "the CA was gone from where it is kept; it is put back"
	case files == nil:
		if err := l.unclaimed(ctx, nil); err != nil { // before it is kept
			return nil, err
		}
		a, err = authority.Root(domain, nil, l.config.Root.Bits, l.config.Root.TTL, now)
	default:
		if a, err = authority.Parse(*files, now); err != nil {
			return nil, &foreignError{l.keeper.String(), "a CA that can't go on: " + err.Error(), "mend it, or delete it, and a new one is made"}
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

// adopt has somebody sign from now on, and publishes the roots.
func (l *life) adopt(next *signer) error {
	was := l.signs.Load()
	if next.same(was) {
		return nil
	}
	b := bundle.Bundle{TrustDomain: next.domains[0], Local: true, Certificates: next.bundle()}
	if next.lists != nil {
		b.Lists = next.lists.Texts
	}
	payload, err := b.Payload()
	if err != nil {
		return err
	}
	if err := l.write(next.believed()); err != nil {
		return err
	}
	l.claims.mine(next.believed())
	if err := l.reported.stop(""); err != nil {
		return err
	}
	var gone []string
	if l.published != "" && l.published != b.TrustDomain {
		gone = []string{l.published}
	}
	if err := l.out.Update(bundle.Table, []*sdk.Row{{Key: b.TrustDomain, Payload: payload, Source: "controller/ca"}}, gone); err != nil {
		return err
	}
	first := l.published == ""
	l.published = b.TrustDomain
	l.signs.Store(next)
	l.change()
	if first {
		close(l.first)
		if l.synced {
			return nil
		}
		l.synced = true
		return l.out.Synced()
	}
	if next.lists.Same(was.lists) {
		l.out.Log(sdk.Info, "another CA signs from now on", "subject", next.String(), "roots", len(next.bundle()))
	} else {
		l.out.Log(sdk.Info, "other revocation lists count from now on", "subject", next.String(), "lists", len(b.Lists))
	}
	return nil
}

// change has what namespaces have looked at again.
func (c *Controller) change() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
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
	return replace.File(path, []byte(strings.Join(roots, "")), 0o644, nil)
}

// concerns reports whether what signs is read from a path, or below it.
func (c *Controller) concerns(path string) bool {
	return slices.ContainsFunc(c.folders(), func(dir string) bool { return strings.HasPrefix(path, dir) || strings.HasPrefix(dir, path) })
}

// folders are those that what signs is read from.
func (c *Controller) folders() (all []string) {
	if c.config.Plugged != "" {
		all = append(all, filepath.Clean(string(c.plugged)))
	}
	if roots := c.config.External.Roots; roots != "" {
		all = append(all, filepath.Dir(roots))
	}
	return all
}

// watch watches the folders, or the nearest ones above them that are there.
func (l *life) watch(w *watch.Watcher) {
	w.Sweep()
	for _, dir := range l.folders() {
		for above := dir; w.Add(above) != nil && above != filepath.Dir(above); {
			above = filepath.Dir(above)
		}
		_ = w.Add(dir) // if it came before the one above it was watched
	}
}
