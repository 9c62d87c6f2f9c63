package jwt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/trust"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Authenticator knows callers by tokens of issuers.
type Authenticator struct {
	config Config
	domain *trust.Domain
	sets   *keysets.Fetcher
	now    func() time.Time
	rings  map[string]*ring
	// end ends fetches; fetches are those under way.
	end     context.CancelFunc
	fetches sync.WaitGroup
	out     atomic.Pointer[sdk.Publisher]
}

// maxToken is the size, in bytes, beyond which a token is not looked at.
const maxToken = 16 << 10

// New returns the authenticator of a config. It fetches nothing yet; an error says that roots or a
// file can't be read.
func New(c Config) (*Authenticator, error) { return newAt(c, time.Now) }

func newAt(c Config, now func() time.Time) (*Authenticator, error) {
	// Issuers are the operator's, not a tenant's: they may be anywhere.
	sets, err := keysets.New(keysets.Bounds{CAFile: c.CAFile, MaxBytes: c.MaxBytes, LinkLocal: true})
	if err != nil {
		return nil, &sdk.FieldError{Field: "caFile", Err: err}
	}
	life, end := context.WithCancel(context.Background())
	a := &Authenticator{config: c, domain: trust.NewDomain(c.TrustDomain), sets: sets, now: now, rings: map[string]*ring{}, end: end}
	for i, issuer := range c.Issuers {
		r := &ring{refresh: c.Refresh, retry: c.Retry, keep: c.Keep, now: now, life: life, fetches: &a.fetches, said: a.says(issuer.Issuer)}
		switch {
		case issuer.JWKS != "":
			r.refresh, r.fetch = 0, func(context.Context) (keys, error) { return readKeys([]byte(issuer.JWKS)) }
			r.keys, err = readKeys([]byte(issuer.JWKS))
		case issuer.JWKSFile != "":
			r.fetch, r.refresh = issuer.source(sets, c.MaxBytes, c.Timeout), c.Retry
			r.keys, err = readFile(issuer.JWKSFile, c.MaxBytes)
			r.got = now()
		default:
			r.fetch = issuer.source(sets, c.MaxBytes, c.Timeout)
		}
		if err != nil {
			end()
			return nil, &sdk.FieldError{Field: fmt.Sprintf("issuers[%d]", i), Err: err}
		}
		a.rings[issuer.Issuer] = r
	}
	return a, nil
}

// Run is a sdk.Source's: it follows the mesh's settings until ctx ends.
func (a *Authenticator) Run(ctx context.Context, out sdk.Publisher) error {
	a.out.Store(&out)
	for _, i := range a.config.Issuers {
		for _, uri := range []string{i.JWKSURI, i.Issuer} {
			if strings.HasPrefix(uri, "http://") && (uri == i.JWKSURI || i.JWKSURI+i.JWKS+i.JWKSFile == "") {
				out.Log(sdk.Warn, "an issuer's keys come by HTTP, not HTTPS: whoever can change them on their way can become anybody", "issuer", i.Issuer)
			}
		}
	}
	a.domain.Follow(ctx, out)
	<-ctx.Done()
	a.end()
	a.fetches.Wait()
	a.sets.Close()
	return nil
}

// says returns what logs that an issuer's keys can't be fetched, once for each reason until they
// can.
func (a *Authenticator) says(issuer string) func(error) {
	var mu sync.Mutex
	last := ""
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		is := ""
		if err != nil {
			is = err.Error()
		}
		out := a.out.Load()
		if is == last || out == nil {
			return
		}
		last = is
		if err == nil {
			(*out).Log(sdk.Info, "an issuer's keys are fetched again", "issuer", issuer)
			return
		}
		if !errors.Is(err, context.Canceled) {
			(*out).Log(sdk.Warn, "an issuer's keys can't be fetched; those that were fetched before count until they are too old, and it is tried again",
				"issuer", issuer, "error", is)
		}
	}
}

// Why tokens don't count.
var (
	errNoToken   = errors.New("no bearer token was shown")
	errNoJWT     = errors.New("the bearer token is no JWT with a signature of RSA, ECDSA or Ed25519")
	errIssuer    = errors.New("the token is of an issuer that is not configured")
	errKey       = errors.New("the token is signed with a key that its issuer hasn't got")
	errSignature = errors.New("the token's signature is wrong")
	errNoExpiry  = errors.New("the token says not when it expires")
	errExpired   = errors.New("the token has expired")
	errEarly     = errors.New("the token is not valid yet; are the clocks right?")
	errSubject   = errors.New("the token's subject is no service account: it must have the form system:serviceaccount:NAMESPACE:SERVICE-ACCOUNT")
)

// Authenticate returns the service account whose token the header `authorization: Bearer TOKEN`
// has, as an identity.
func (a *Authenticator) Authenticate(ctx context.Context, c sdk.Credentials) ([]string, error) {
	shown := c.Bearer()
	if shown == "" {
		return nil, errNoToken
	}
	claims, err := a.check(ctx, shown)
	if err != nil {
		return nil, err
	}
	namespace, name, ok := trust.Account(claims.Subject)
	if !ok {
		return nil, errSubject
	}
	domain, err := a.domain.Name(ctx)
	if err != nil {
		return nil, err
	}
	return []string{istio.Identity{TrustDomain: domain, Namespace: namespace, ServiceAccount: name}.String()}, nil
}

// check returns what a token says, if its issuer says it.
func (a *Authenticator) check(ctx context.Context, shown string) (*jwt.Claims, error) {
	if len(shown) > maxToken {
		return nil, fmt.Errorf("the bearer token has %d bytes; the limit is %d", len(shown), maxToken)
	}
	token, err := jwt.ParseSigned(shown, algorithms)
	if err != nil || len(token.Headers) != 1 {
		return nil, errNoJWT
	}
	said := jwt.Claims{}
	if err := token.UnsafeClaimsWithoutVerification(&said); err != nil {
		return nil, errNoJWT
	}
	i := slices.IndexFunc(a.config.Issuers, func(i Issuer) bool { return i.Issuer == said.Issuer })
	if i < 0 {
		return nil, errIssuer
	}
	fitting, err := a.rings[said.Issuer].find(ctx, func(all keys) keys { return all.of(token.Headers[0]) })
	if err != nil {
		return nil, err
	}
	if len(fitting) == 0 {
		return nil, errKey
	}
	for _, k := range fitting {
		claims := &jwt.Claims{}
		if token.Claims(k.Key, claims) == nil {
			return claims, a.valid(claims, a.config.Issuers[i].Audiences)
		}
	}
	return nil, errSignature
}

// valid says what is wrong with what an issuer says: its time, or whom it is for.
func (a *Authenticator) valid(c *jwt.Claims, audiences []string) error {
	now := a.now()
	switch {
	case c.Expiry == nil:
		return errNoExpiry
	case now.After(c.Expiry.Time().Add(a.config.Skew)):
		return errExpired
	case c.NotBefore != nil && now.Add(a.config.Skew).Before(c.NotBefore.Time()):
		return errEarly
	case !slices.ContainsFunc(c.Audience, func(of string) bool { return slices.Contains(audiences, of) }):
		return fmt.Errorf("the token is meant for others: its audience is none of %s", strings.Join(audiences, ", "))
	}
	return nil
}
