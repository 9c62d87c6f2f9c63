package jwt

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's config.
type Config struct {
	Issuers     []Issuer      `json:"issuers" doc:"Whose tokens count."`
	TrustDomain string        `json:"trustDomain" doc:"The trust domain of identities; the mesh's where it is left out."`
	CAFile      string        `json:"caFile" doc:"PEM file with roots that are trusted besides the system's."`
	Skew        time.Duration `json:"skew" min:"0s" doc:"How far the issuer's clock may be off."`
	Refresh     time.Duration `json:"refresh" min:"1ms" doc:"How old keys may become until they are fetched again."`
	Retry       time.Duration `json:"retry" min:"1ms" doc:"How long at least between two fetches, also where a token has a key that is unknown."`
	Keep        time.Duration `json:"keep" min:"1ms" doc:"How long keys count that can't be fetched again."`
	Timeout     time.Duration `json:"timeout" min:"1ms" doc:"How long a fetch may take."`
	MaxBytes    int64         `json:"maxBytes" min:"1" doc:"The largest answer that is taken."`
}

// Issuer is one whose tokens count. Of JWKSURI, JWKS and JWKSFile it has one at most; with none it
// is asked where its keys are.
type Issuer struct {
	Issuer    string   `json:"issuer" required:"true" doc:"The claim iss of its tokens."`
	Audiences []string `json:"audiences" required:"true" min:"1" doc:"The claim aud must have one of these."`
	JWKSURI   string   `json:"jwksUri" doc:"Where its keys are; otherwise it is asked for them by OpenID Connect Discovery."`
	JWKS      string   `json:"jwks" doc:"Its keys themselves, a JSON Web Key Set."`
	JWKSFile  string   `json:"jwksFile" doc:"A file with its keys."`
}

func defaults() Config {
	return Config{
		Skew: 10 * time.Second, Refresh: 20 * time.Minute, Retry: 10 * time.Second, Keep: 24 * time.Hour, Timeout: 5 * time.Second, MaxBytes: 1 << 20,
	}
}

// Check is a sdk.Checker's.
func (c *Config) Check() error {
	for i, issuer := range c.Issuers {
		path := fmt.Sprintf("issuers[%d]", i)
		if err := issuer.check(path); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Issuers[:i], func(o Issuer) bool { return o.Issuer == issuer.Issuer }) {
			return wrong(path+".issuer", "%q stands there twice; put all audiences into one", issuer.Issuer)
		}
	}
	return nil
}

func (i Issuer) check(path string) error {
	if slices.Contains(i.Audiences, "") {
		return wrong(path+".audiences", "one is empty: tokens that are meant for others must not count here")
	}
	given := 0
	for _, from := range []string{i.JWKSURI, i.JWKS, i.JWKSFile} {
		if from != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return wrong(path, "has several of jwksUri, jwks and jwksFile; one says where the keys are")
	case i.JWKS != "":
		if _, err := readKeys([]byte(i.JWKS)); err != nil {
			return wrong(path+".jwks", "%w", err)
		}
	case i.JWKSURI != "":
		return isURL(path+".jwksUri", i.JWKSURI)
	case i.JWKSFile == "":
		return isURL(path+".issuer", i.Issuer)
	}
	return nil
}

func isURL(path, text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return wrong(path, "%q is no URL of HTTP or HTTPS, from which keys could be had", text)
	}
	return nil
}

func wrong(field, format string, args ...any) error {
	return &sdk.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}
