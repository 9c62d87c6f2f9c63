package caller

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Words for what became of a question, as metrics have them.
const (
	Accepted   = "accepted"
	Refused    = "refused"
	Unanswered = "unanswered"
)

// Verdict is what one authenticator makes of credentials.
type Verdict struct {
	Word   string
	Reason string
	Known
	// Limit of plugins.yaml that is why there is none, as the core or the plugin says; mostly
	// empty.
	Limit string
}

// Known is a caller whom an authenticator knows.
type Known struct {
	Identities []string
	// Facts are what else it has verified, for plugins that answer the caller's calls.
	Facts map[string]string
}

const (
	maxIdentities = 64
	maxIdentity   = 2048
	maxFacts      = 16
	maxFact       = 1024
	maxReason     = 300
)

// Judge reads an answer; silence says why there is none, if it is nil. One that makes no sense
// refuses.
func Judge(answer *pb.Caller, silence error, shown Credentials) Verdict {
	if answer == nil {
		return Verdict{Word: Unanswered, Reason: silence.Error(), Limit: session.CrossedLimit(silence)}
	}
	if answer.Failure != "" {
		return Verdict{Word: Unanswered, Reason: "could not tell: " + speakable(answer.Failure, shown), Limit: answer.Limit}
	}
	reason := answer.Refusal
	switch {
	case reason != "":
	case len(answer.Identities) == 0:
		reason = "it named no identity"
	case len(answer.Identities) > maxIdentities:
		reason = fmt.Sprintf("it named %d identities; the limit is %d", len(answer.Identities), maxIdentities)
	default:
		for _, id := range answer.Identities {
			if id == "" || len(id) > maxIdentity {
				reason = fmt.Sprintf("it named an identity of %d bytes; the limits are 1 and %d", len(id), maxIdentity)
			}
		}
		if len(answer.Facts) > maxFacts {
			reason = fmt.Sprintf("it told %d facts; the limit is %d", len(answer.Facts), maxFacts)
		}
		for k, v := range answer.Facts {
			if size := len(k) + len(v); size > maxFact {
				reason = fmt.Sprintf("it told a fact of %d bytes; the limit is %d", size, maxFact)
			}
		}
	}
	if reason != "" {
		return Verdict{Word: Refused, Reason: speakable(reason, shown)}
	}
	return Verdict{Word: Accepted, Known: Known{answer.Identities, answer.Facts}}
}

// String is the verdict in words.
func (v Verdict) String() string {
	if v.Word == Accepted {
		return fmt.Sprint(v.Word, " as ", v.Identities)
	}
	return v.Word + " (" + v.Reason + ")"
}

// Is reports whether two verdicts say the same of who it is.
func (v Verdict) Is(w Verdict) bool {
	return v.Word == w.Word && strings.Join(v.Identities, "\x00") == strings.Join(w.Identities, "\x00")
}

// speakable makes one printable line of what a plugin said, without what the caller showed.
func speakable(reason string, shown Credentials) string {
	for _, value := range shown.Headers {
		for _, secret := range append(strings.Fields(value), value) {
			if len(secret) >= 8 {
				reason = strings.ReplaceAll(reason, secret, "(hidden)")
			}
		}
	}
	return budget.Line(reason, maxReason)
}
