package jwks

import (
	"time"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// want is how a key set is got: from URI, or where the issuer says (Discover). Timeout is 0 where
// no rule says any.
type want struct {
	URI      string
	Discover bool
	Timeout  time.Duration
}

// wants are the key sets that rules ask for, by the key of their row. Of rules that ask for the
// same, the most patient counts. Resources that can't be read ask for nothing: who checks them says
// so.
func wants(s *state.State) map[string]want {
	out := map[string]want{}
	for _, row := range s.Table(kinds.RequestAuthentication).All() {
		spec, err := kinds.Decode[*security.RequestAuthentication](row)
		if err != nil {
			continue
		}
		for _, r := range spec.JwtRules {
			if r.Jwks != "" {
				continue
			}
			key, w := r.JwksUri, want{URI: r.JwksUri, Timeout: r.Timeout.AsDuration()}
			if key == "" {
				key, w.URI, w.Discover = r.Issuer, r.Issuer, true
			}
			if have, ok := out[key]; ok {
				w.Timeout = max(w.Timeout, have.Timeout)
			}
			if key != "" {
				out[key] = w
			}
		}
	}
	return out
}
