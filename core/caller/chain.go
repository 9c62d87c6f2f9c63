package caller

import (
	"slices"
	"strings"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Asked is a plugin that is asked something.
type Asked struct {
	Name string
	// Call is how long it may take for an answer, Progress how long it may show no sign of life
	// while it owes one; 0: no limit.
	Call, Progress time.Duration
}

// Authenticator is a plugin that can be asked who is calling.
type Authenticator struct {
	Asked
	// Common are those of CommonHeaders that it is shown, Headers those that it wants besides.
	Common, Headers []string
}

// Question is what the authenticator is asked: no one is shown a header that another has asked for.
func (a Authenticator) Question(shown Credentials) *pb.Authenticate {
	own := make(map[string]string, len(shown.Headers))
	for _, name := range slices.Concat(a.Common, a.Headers) {
		if value, ok := shown.Headers[name]; ok {
			own[name] = value
		}
	}
	return shown.message(own)
}

// Chain is about one caller: authenticators are asked in order until one knows it.
type Chain struct {
	left []Authenticator
	// known is whom it was accepted as; reasons are those of all who did not accept, and open: one
	// of them could not tell.
	known   Known
	reasons []string
	open    bool
}

// Begin begins to ask about whoever shows the credentials. The error is a gRPC status.
func Begin(shown Credentials, authenticators []Authenticator) (*Chain, error) {
	if size := shown.message(shown.Headers).Size(); size > MaxCredentials {
		return nil, status.Errorf(codes.Unauthenticated, "the credentials have %d bytes; %d are taken", size, MaxCredentials)
	}
	return &Chain{left: authenticators}, nil
}

// Next is whom to ask now; false: nobody, Result is known.
func (c *Chain) Next() (Authenticator, bool) {
	if len(c.left) == 0 {
		return Authenticator{}, false
	}
	return c.left[0], true
}

// Heard takes the verdict of whom Next named.
func (c *Chain) Heard(v Verdict) {
	name := c.left[0].Name
	c.left = c.left[1:]
	switch v.Word {
	case Accepted:
		c.known, c.left = v.Known, nil
	case Refused:
		c.reasons = append(c.reasons, name+": "+v.Reason)
	default:
		c.open = true
		c.reasons = append(c.reasons, name+" "+v.Reason)
	}
}

// Result returns who the caller is. The error is a gRPC status: Unauthenticated if all refuse,
// Unavailable if one could not tell, who might know the caller.
func (c *Chain) Result() (Known, error) {
	why := strings.Join(c.reasons, "; ")
	switch {
	case len(c.known.Identities) > 0:
		return c.known, nil
	case len(c.reasons) == 0:
		return Known{}, status.Error(codes.Unauthenticated, "nobody can say who is calling: plugins.yaml declares no authenticator")
	case c.open:
		return Known{}, status.Error(codes.Unavailable, "nobody can say now who is calling: "+why)
	}
	return Known{}, status.Error(codes.Unauthenticated, "the credentials are refused: "+why)
}
