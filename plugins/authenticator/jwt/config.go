package jwt

import (
	"net/url"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's config, with its durations read.
type Config struct {
	Issuers []Issuer
	// TrustDomain of identities; empty: the mesh's.
	TrustDomain string
	CAFile      string
	// Skew is how far clocks may be apart. Refresh is how old keys may become, Retry the least time between two fetches, Keep
	// how long keys count that can't be fetched again, Timeout how long a fetch may take.
	Skew, Refresh, Retry, Keep, Timeout time.Duration
	MaxBytes                            int64
}

// Issuer is one whose tokens count. Of JWKSURI, JWKS and JWKSFile it has one at most; with none it is asked where its keys are.
type Issuer struct {
	Issuer    string   `json:"issuer"`
	Audiences []string `json:"audiences"`
	JWKSURI   string   `json:"jwksUri"`
	JWKS      string   `json:"jwks"`
	JWKSFile  string   `json:"jwksFile"`
}

// written is the config as it is written.
type written struct {
	Issuers     []Issuer `json:"issuers"`
	TrustDomain string   `json:"trustDomain"`
	CAFile      string   `json:"caFile"`
	Skew        string   `json:"skew"`
	Refresh     string   `json:"refresh"`
	Retry       string   `json:"retry"`
	Keep        string   `json:"keep"`
	Timeout     string   `json:"timeout"`
	MaxBytes    int64    `json:"maxBytes"`
}

// parse reads a config, fills in defaults and checks it. Errors are *sdk.FieldError.
func parse(config []byte) (Config, error) {
	w := written{MaxBytes: 1 << 20}
	if err := strict.Decode(config, &w); err != nil {
		return Config{}, err
	}
	c := Config{Issuers: w.Issuers, TrustDomain: w.TrustDomain, CAFile: w.CAFile, MaxBytes: w.MaxBytes}
	for _, f := range []struct {
		name, text string
		into       *time.Duration
		otherwise  time.Duration
	}{
		{"skew", w.Skew, &c.Skew, 10 * time.Second}, {"refresh", w.Refresh, &c.Refresh, 20 * time.Minute},
		{"retry", w.Retry, &c.Retry, 10 * time.Second}, {"keep", w.Keep, &c.Keep, 24 * time.Hour}, {"timeout", w.Timeout, &c.Timeout, 5 * time.Second},
	} {
		var err error
		if *f.into, err = strict.Duration(f.name, f.text, f.otherwise); err != nil {
			return c, err
		}
		if *f.into == 0 && f.name != "skew" {
			return c, strict.Errorf(f.name, "must be above 0, such as %s", f.otherwise)
		}
	}
	if c.MaxBytes < 1 {
		return c, strict.Errorf("maxBytes", "%d is less than 1", c.MaxBytes)
	}
	for i, issuer := range c.Issuers {
		if err := issuer.check(strict.At("issuers", i)); err != nil {
			return c, err
		}
		if slices.ContainsFunc(c.Issuers[:i], func(o Issuer) bool { return o.Issuer == issuer.Issuer }) {
			return c, strict.Errorf(strict.At("issuers", i)+".issuer", "%q stands there twice; put all audiences into one", issuer.Issuer)
		}
	}
	return c, nil
}

func (i Issuer) check(path string) error {
	if i.Issuer == "" {
		return strict.Errorf(path+".issuer", "is missing: name the claim iss of the tokens")
	}
	if len(i.Audiences) == 0 || slices.Contains(i.Audiences, "") {
		return strict.Errorf(path+".audiences", "must name the audiences, such as istio-ca: tokens that are meant for others must not count here")
	}
	given := 0
	for _, from := range []string{i.JWKSURI, i.JWKS, i.JWKSFile} {
		if from != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return strict.Errorf(path, "has several of jwksUri, jwks and jwksFile; one says where the keys are")
	case i.JWKS != "":
		if _, err := readKeys([]byte(i.JWKS)); err != nil {
			return strict.Errorf(path+".jwks", "%v", err)
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
		return strict.Errorf(path, "%q is no URL of HTTP or HTTPS, from which keys could be had", text)
	}
	return nil
}
