package inject

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// promptly is how long callers say that they wait: who isn't answered by then is refused (504).
const promptly = 3 * time.Second

// TestClientCA: with httpsClientCAFile reviews of who has a certificate of that authority are
// answered; who has none is told so, and can ask whether the port is open; who has another
// authority's gets no connection. Authorities that are replaced count at once. While hundreds
// without a certificate ask again and again, a verified caller has each answer promptly, even from
// their own address.
func TestClientCA(t *testing.T) {
	believed, other, dir, at := authority.New(t), authority.New(t), t.TempDir(), wait.Address(t)
	verified, stranger := t.TempDir(), t.TempDir()
	believed.IssueLocal(t, verified)
	other.IssueLocal(t, stranger)
	roots := filepath.Join(dir, "clients.pem")
	trust := func(of string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(of, "root-cert.pem"))
		if err == nil {
			err = os.WriteFile(roots+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(roots+".new", roots)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust(verified)
	for name, text := range map[string]string{"plugins.yaml": filesSet, "inject.yaml": "policy: enabled\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mesh.Start(t, binary, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--httpsAddr", at, "--httpsClientCAFile", roots).Ready(t)
	a := asker{url: "https://" + at, body: podReview(t, "shop", nil, nil)}

	a.expect(t, "of the authority", a.with(t, "127.0.0.1", verified), http.StatusOK)
	a.expect(t, "without a certificate", a.with(t, "127.0.0.1", ""), http.StatusForbidden)
	a.expect(t, "of another authority", a.with(t, "127.0.0.1", stranger), 0)
	if said, err := a.with(t, "127.0.0.1", "").Get(a.url + "/httpsReady"); err != nil || said.StatusCode != http.StatusOK {
		t.Errorf("without a certificate, whether it is open: %v, %v", said, err)
	} else {
		_ = said.Body.Close()
	}
	trust(stranger)
	a.expect(t, "of the authority that was", a.with(t, "127.0.0.1", verified), 0)
	a.expect(t, "of the next authority", a.with(t, "127.0.0.1", stranger), http.StatusOK)

	a.floods(t, map[string]*http.Client{
		"from another address": a.with(t, "127.0.0.1", stranger), "from the flood's address": a.with(t, "127.0.0.2", stranger),
	})
}

// asker asks about a pod.
type asker struct {
	url  string
	body []byte
}

// with returns a client of an address that has the certificate of a folder; empty: none.
func (a asker) with(t *testing.T, address, folder string) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if folder != "" {
		own, err := tls.LoadX509KeyPair(filepath.Join(folder, "cert-chain.pem"), filepath.Join(folder, "key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		// Whatever authorities the server names: others' are shown, too.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	c := from(t, address)
	c.Transport.(*http.Transport).TLSClientConfig = config
	return c
}

// ask returns the status; 0: there is no connection, as TLS refuses the certificate.
func (a asker) ask(by *http.Client) (code int, err error) {
	said, err := by.Post(a.url+"/inject?timeout="+promptly.String(), "application/json", bytes.NewReader(a.body))
	if err != nil {
		var alert tls.AlertError
		if refused := (*net.OpError)(nil); errors.As(err, &alert) || errors.As(err, &refused) && refused.Op == "remote error" {
			return 0, nil
		}
		return -1, err
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err == nil && said.StatusCode == http.StatusOK && !bytes.Contains(text, []byte(`"patch":`)) {
		err = fmt.Errorf("no proxy is injected: %.300s", text)
	}
	return said.StatusCode, err
}

func (a asker) expect(t *testing.T, who string, by *http.Client, code int) {
	t.Helper()
	if got, err := a.ask(by); got != code || err != nil {
		t.Errorf("%s: %d, %v; not %d", who, got, err, code)
	}
}

// floods has hundreds ask without a certificate, on connections that stay and on new ones, and
// verified callers beside them.
func (a asker) floods(t *testing.T, callers map[string]*http.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	var asked atomic.Int64
	loud := a.with(t, "127.0.0.2", "")
	for range manyAtOnce {
		flood.Go(func() {
			for ctx.Err() == nil {
				if code, err := a.ask(loud); code != http.StatusForbidden || err != nil {
					t.Errorf("of the flood one is answered %d, %v", code, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	wait.For(t, "the flood is there", func() error {
		if n := asked.Load(); n < 2*manyAtOnce {
			return fmt.Errorf("%d of it were answered", n)
		}
		return nil
	})
	for where, by := range callers {
		before, longest := asked.Load(), time.Duration(0)
		for n := range 50 {
			began := time.Now()
			a.expect(t, fmt.Sprintf("%s, the %d. review", where, n), by, http.StatusOK)
			longest = max(longest, time.Since(began))
		}
		t.Logf("%s: 50 reviews beside %d of the flood, the longest took %v", where, asked.Load()-before, longest)
		if asked.Load() == before {
			t.Error("there was no flood meanwhile")
		}
	}
}
