package artifact

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/artifact/reference"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

const (
	// silence is how long a registry may say nothing.
	silence = 30 * time.Second
	// mostRedirects is how often a request may be sent elsewhere: registries keep blobs in stores
	// of objects.
	mostRedirects = 5
	// mostHeader bounds the header of an answer, mostText what is told of an error, in bytes.
	mostHeader = 64 << 10
	mostText   = 1 << 10
)

// repository returns the client of a source's repository.
func (src Source) repository() (*remote.Repository, error) {
	repo, err := remote.NewRepository(src.Reference.Registry() + "/" + src.Reference.Repository())
	if err != nil {
		return nil, err
	}
	client, err := src.client()
	if err != nil {
		return nil, err
	}
	repo.Client, repo.PlainHTTP, repo.MaxMetadataBytes = client, src.plainHTTP(), mostManifest
	repo.SkipReferrersGC = true
	return repo, nil
}

// catalog returns the client of a whole registry.
func (src Source) catalog(registry string) (*remote.Registry, error) {
	of, err := remote.NewRegistry(registry)
	if err != nil {
		return nil, err
	}
	src.Reference = reference.Reference("oci://" + registry + "/x") // whose host is what counts
	client, err := src.client()
	if err != nil {
		return nil, err
	}
	of.Client, of.PlainHTTP, of.MaxMetadataBytes = client, src.plainHTTP(), mostManifest
	return of, nil
}

// loopback reports whether a host, with or without a port, is this machine by its name.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// plainHTTP reports whether the registry is spoken to in plain text: also one on this machine that
// no CA is named for, as Docker does.
func (src Source) plainHTTP() bool {
	return src.PlainHTTP || src.CA == "" && loopback(src.Reference.Registry())
}

func (src Source) client() (*auth.Client, error) {
	who, err := src.credentials()
	if err != nil {
		return nil, err
	}
	roots, err := src.roots()
	if err != nil {
		return nil, err
	}
	return &auth.Client{
		Client: src.http(roots), Header: http.Header{"User-Agent": {"coxswain"}}, Cache: auth.NewCache(), Credential: who,
	}, nil
}

// http is a client that holds a server to the source's terms.
func (src Source) http(roots *x509.CertPool) *http.Client {
	guard := &guard{src: src}
	proxy, admits := http.ProxyFromEnvironment, src.admits
	if src.Admits != nil {
		proxy, admits = nil, src.Admits
	}
	guard.next = &http.Transport{
		Proxy: proxy,
		DialContext: (&net.Dialer{Timeout: silence, Control: func(_, address string, _ syscall.RawConn) error {
			return admits(address)
		}}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   silence,
		ResponseHeaderTimeout: silence, MaxResponseHeaderBytes: mostHeader, ForceAttemptHTTP2: true,
		DisableKeepAlives: true, // a client serves but one pull
	}
	return &http.Client{Transport: guard, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects {
			return fmt.Errorf("it was sent elsewhere more than %d times", mostRedirects)
		}
		return nil
	}}
}

func (src Source) roots() (*x509.CertPool, error) {
	if src.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(src.CA)
	if err != nil {
		return nil, fmt.Errorf("pull.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("pull.ca: %s has no certificate in PEM", src.CA)
	}
	return pool, nil
}

// credentials returns who the registry is told to be spoken to by.
func (src Source) credentials() (auth.CredentialFunc, error) {
	if src.Docker != nil {
		return src.told()
	}
	file, named := src.Credentials, src.Credentials != ""
	if !named {
		file = dockerConfig()
	}
	info, err := os.Stat(file)
	switch {
	case err != nil && !named:
		return nil, nil // nobody has logged in
	case err != nil:
		return nil, fmt.Errorf("pull.credentials: %w", err)
	case info.Size() > mostConfig:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", file, info.Size(), mostConfig)
	}
	var store credentials.Store
	if src.Helpers {
		store, err = credentials.NewStore(file, credentials.StoreOptions{})
	} else {
		store, err = credentials.NewFileStore(file)
	}
	if err != nil { // what it says could be a secret
		return nil, fmt.Errorf("credentials: %s is not like Docker's config.json", file)
	}
	return credentials.Credential(store), nil
}

// told are credentials that a text has.
func (src Source) told() (auth.CredentialFunc, error) {
	if len(src.Docker) == 0 {
		return nil, nil
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(src.Docker)
	if err != nil { // what it says could be a secret
		return nil, errors.New("credentials: they are not like Docker's config.json")
	}
	return credentials.Credential(store), nil
}

// dockerConfig is where Docker keeps who it is logged in as. Source: Docker CLI, "Change the
// .docker directory".
func dockerConfig() string {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".docker")
	}
	return filepath.Join(dir, "config.json")
}

// linkLocal are the addresses of the link itself, at which clouds keep secrets of machines. Source:
// RFC 3927; RFC 4291, section 2.5.6.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// admits reports, as an error, why an address may not be connected to. It is asked when a
// connection is made, with what a name resolved to: neither a redirect nor a second answer of the
// name's server gets round it.
func (src Source) admits(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().WithZone("").Unmap()
	if embedded := netip.MustParsePrefix("64:ff9b::/96"); embedded.Contains(ip) { // RFC 6052, section 2.1
		last := ip.As16()
		ip = netip.AddrFrom4([4]byte(last[12:]))
	}
	for _, p := range linkLocal {
		if p.Contains(ip) {
			return fmt.Errorf("%s is an address of the link itself, where no registry is looked for", ip)
		}
	}
	if (ip.IsLoopback() || ip.IsUnspecified()) && !loopback(src.Reference.Registry()) && !proxied() {
		return fmt.Errorf("%s is this machine, and the registry %s is elsewhere", ip, src.Reference.Registry())
	}
	return nil
}

// proxied reports whether the environment names a proxy, which may be on this machine.
func proxied() bool {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// guard holds each request to its rules, those of redirects and of servers of tokens too, and each
// answer to its time and size.
type guard struct {
	src  Source
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !(r.URL.Scheme == "http" && g.src.plainHTTP() && (g.src.PlainHTTP || loopback(r.URL.Host))) {
		return nil,
			fmt.Errorf("it leads to %s in plain text: that is for registries on this machine, and for those that are said to speak plain HTTP", r.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	answer, err := g.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	late := time.AfterFunc(silence, func() { cancel(errSilent) })
	answer.Body = &boundedBody{ReadCloser: answer.Body, ctx: ctx, late: late, left: int64(g.src.Bytes) + mostManifest, end: func() { late.Stop(); cancel(nil) }}
	return answer, nil
}

var errSilent = fmt.Errorf("the registry says nothing for %v", silence)

// boundedBody is an answer that ends with an error where it is too long, or stops coming.
type boundedBody struct {
	io.ReadCloser
	ctx  context.Context
	late *time.Timer
	left int64
	end  func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.late.Reset(silence)
	if cause := context.Cause(b.ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("it sends more than pull.bytes allows")
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

var (
	queries  = regexp.MustCompile(`\?[^\s"']*`)
	userinfo = regexp.MustCompile(`//[^/\s"'@]*@`)
)

// plain is an error without what URLs may have that is secret, and not longer than it need be.
func plain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		err = cause
	}
	text := queries.ReplaceAllString(inWords(err), "?…")
	text = userinfo.ReplaceAllString(text, "//")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return &fetchError{text, err}
}

// inWords is what an error says. Of a registry's refusal it is what it means here, and what the
// registry says of it.
func inWords(err error) string {
	var refusal *errcode.ErrorResponse
	if !errors.As(err, &refusal) {
		if text, ok := strings.CutSuffix(err.Error(), ": "+errdef.ErrNotFound.Error()); ok {
			return text + ": the registry has not got it"
		}
		return err.Error()
	}
	means := "the registry refuses it"
	switch status := refusal.StatusCode; {
	case status == http.StatusUnauthorized:
		means = "the registry does not know who asks: log in (docker login), or name a file of credentials"
	case status == http.StatusForbidden:
		means = "the registry does not allow it to who asks"
	case status == http.StatusNotFound:
		means = "the registry has not got it"
	case status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented:
		means = "the registry does not do this"
	case status == http.StatusTooManyRequests:
		means = "the registry was asked too often: try later"
	case status >= http.StatusInternalServerError:
		means = "the registry fails: try later"
	}
	var says []string
	for _, e := range refusal.Errors {
		e.Detail = nil // which may be anything
		says = append(says, e.Error())
	}
	says = append([]string{fmt.Sprint("status ", refusal.StatusCode)}, says...)
	return strings.Replace(err.Error(), refusal.Error(), fmt.Sprintf("%s (%s)", means, strings.Join(says, "; ")), 1)
}

// fetchError is why an artifact can't be had, in words that may be shown.
type fetchError struct {
	text string
	err  error
}

// Error implements error.
func (e *fetchError) Error() string { return e.text }

// Unwrap returns the error's cause.
func (e *fetchError) Unwrap() error { return e.err }
