package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Why tokens don't count, as far as they themselves say it.
var (
	errNoToken  = errors.New("no bearer token was shown")
	errNoJWT    = errors.New("the bearer token is no service account's: those are JWTs with a signature")
	errExpired  = errors.New("the token has expired")
	errEarly    = errors.New("the token is not valid yet; are the clocks right?")
	errAudience = "the token is meant for others: its audience is none of %s"
	errFirst    = errors.New("the token names no audience, as those of Secrets do: mount a projected one (serviceAccountToken with an audience)")
)

const (
	// maxToken is the size, in bytes, beyond which a token is not looked at.
	maxToken = 16 << 10
	// apart is how far an API server's clock may be from ours. What is so old or so new need not be
	// asked about.
	apart = 2 * time.Minute
	// forever is when a token expires that doesn't: those of Secrets.
	forever = 100 * 365 * 24 * time.Hour
)

// algorithms are all that a token can be signed with; whether the signature is right the API server
// says.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// look says what is wrong with a token, as far as no API server need be asked: made-up ones make no
// requests. Otherwise it returns when it expires. Nothing of what it says is believed for good.
func (t Tokens) look(token string, now time.Time) (until time.Time, err error) {
	if len(token) > maxToken {
		return until, fmt.Errorf("the bearer token has %d bytes; the limit is %d", len(token), maxToken)
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return until, errNoJWT
	}
	var c jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		return until, errNoJWT
	}
	until = now.Add(forever)
	if c.Expiry != nil {
		until = c.Expiry.Time()
	}
	switch {
	case now.After(until.Add(apart)):
		return until, errExpired
	case c.NotBefore != nil && now.Add(apart).Before(c.NotBefore.Time()):
		return until, errEarly
	case t.FirstParty || slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(t.Audiences, a) }):
		return until, nil
	case len(c.Audience) == 0:
		return until, errFirst
	}
	return until, fmt.Errorf(errAudience, strings.Join(t.Audiences, ", "))
}
