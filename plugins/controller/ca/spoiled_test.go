package ca

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
)

// secretServer is an API server that has the Secret of a CA, and nothing else.
type secretServer struct {
	mu      sync.Mutex
	data    map[string]string
	written int
}

func (s *secretServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method != http.MethodGet:
		s.written++
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case strings.HasSuffix(r.URL.Path, "/secrets/istio-ca-secret"):
		text, _ := json.Marshal(s.data)
		fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1",`+
			`"metadata":{"name":"istio-ca-secret","namespace":"istio-system","resourceVersion":"1"},"data":%s}`, text)
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// TestSpoiledSecret: a Secret whose CA can't be used stops the CA: there are no roots, people are
// shown why and what to do, and it stays as it is: no new CA takes its place.
func TestSpoiledSecret(t *testing.T) {
	made := func() *authority.Authority {
		t.Helper()
		a, err := authority.Root("cluster.local", newKey(t), 0, time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	own, other := encode(t, made()), encode(t, made())
	for name, c := range map[string]struct{ certificate, key []byte }{
		"no certificate":     {nil, own.Key},
		"no key":             {own.Certificate, nil},
		"half a key":         {own.Certificate, own.Key[:len(own.Key)/2]},
		"another's key":      {own.Certificate, other.Key},
		"text":               {[]byte("spoiled"), own.Key},
		"a key in its place": {own.Key, own.Key},
	} {
		t.Run(name, func(t *testing.T) {
			text := base64.StdEncoding.EncodeToString
			s := &secretServer{data: map[string]string{certificateKey: text(c.certificate), keyKey: text(c.key)}}
			at := httptest.NewServer(s)
			t.Cleanup(at.Close)
			file := filepath.Join(t.TempDir(), "kubeconfig")
			access := "{clusters: [{name: a, cluster: {server: '" + at.URL + "'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
			if err := os.WriteFile(file, []byte(access), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			h := plugintest.Start(t, Plugin(), fmt.Appendf(nil, `{"keep": "secret", "kubeconfig": %q}`, file))
			h.Commit()
			h.WaitSynced()
			if rows := h.Rows(bundle.Table); len(rows) > 0 {
				t.Errorf("there are roots: %v", rows)
			}
			said := ""
			for _, r := range h.Rows(kinds.FaultTable) {
				said += string(r.Payload)
			}
			for _, want := range []string{"secret istio-system/istio-ca-secret has a CA that can't go on", "mend it, or delete it"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said: %s", want, said)
				}
			}
			if strings.Contains(said, "PRIVATE") {
				t.Errorf("it tells of the key: %s", said)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.written > 0 {
				t.Errorf("something was written %d times", s.written)
			}
		})
	}
}
