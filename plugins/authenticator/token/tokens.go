package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"time"
)

// digest is a token's SHA-256. Digests are compared, not tokens: they have one length, and what a
// comparison takes says nothing of the token.
type digest [sha256.Size]byte

// entry is one token and whose it is.
type entry struct {
	digest     digest
	identities []string
	// expires is when it counts no more; zero: never.
	expires time.Time
	line    int
}

// tokens are the entries of a file.
type tokens []entry

// Why a token doesn't count.
var (
	errUnknown = errors.New("the token is unknown")
	errExpired = errors.New("the token has expired")
)

// whose returns the identities of a token. It looks at all entries, whichever fits.
func (t tokens) whose(token string, now time.Time) ([]string, error) {
	shown := digest(sha256.Sum256([]byte(token)))
	found := -1
	for i := range t {
		equal := subtle.ConstantTimeCompare(shown[:], t[i].digest[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	switch {
	case found < 0:
		return nil, errUnknown
	case !t[found].expires.IsZero() && !now.Before(t[found].expires):
		return nil, errExpired
	}
	return t[found].identities, nil
}

// equal reports whether two files say the same.
func (t *tokens) equal(u tokens) bool {
	return slices.EqualFunc(*t, u, func(a, b entry) bool {
		return a.digest == b.digest && slices.Equal(a.identities, b.identities) && a.expires.Equal(b.expires)
	})
}
