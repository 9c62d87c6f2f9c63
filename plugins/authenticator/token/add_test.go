package token

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// whoseIn returns whose a token is by a file.
func whoseIn(t *testing.T, path, token string, now time.Time) ([]string, error) {
	t.Helper()
	all, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return all.whose(token, now)
}

// TestCreate: a new token counts until it expires; what the file had stays, with its comments, and
// nobody else may read the file.
func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Now()
	first, err := Create(path, web, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := whoseIn(t, path, first, now.Add(1000*time.Hour)); err != nil || !slices.Equal(ids, []string{web}) {
		t.Errorf("a token without an end: %v, %v", ids, err)
	}
	if err := os.WriteFile(path, []byte("# ours\ntokens: [{token: "+secret+", identities: ["+cart+"]}] # by hand\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	second, err := Create(path, web, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := whoseIn(t, path, second, now); err != nil || !slices.Equal(ids, []string{web}) {
		t.Errorf("%v, %v", ids, err)
	}
	if _, err := whoseIn(t, path, second, now.Add(time.Hour)); !errors.Is(err, errExpired) {
		t.Errorf("it counts after its end: %v", err)
	}
	if ids, err := whoseIn(t, path, secret, now); err != nil || !slices.Equal(ids, []string{cart}) {
		t.Errorf("what stood there: %v, %v", ids, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "# ours") || !strings.Contains(string(text), "# by hand") ||
		strings.Contains(string(text), second) || info.Mode().Perm() != 0o600 || first == second {
		t.Errorf("%v\n%s", info.Mode(), text)
	}
}

// TestCreateRefuses: a file with a mistake, and one that somebody else has changed, stay as they
// are, and nothing is left beside them.
func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens.yaml")
	for _, text := range []string{"tokens: [{tokken: " + secret + "}]", "[", "tokens: []\n---\ntokens: []\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(path, web, time.Time{}); err == nil || strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("%s: %v", text, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("it became %s (%v)", now, err)
		}
	}
	if err := exchange(path, []byte("what was read before"), []byte("tokens: []")); err == nil || !strings.Contains(err.Error(), "changed by somebody else") {
		t.Error(err)
	}
	if _, err := Create(filepath.Join(dir, "none", "tokens.yaml"), web, time.Time{}); err == nil {
		t.Error("a folder is made")
	}
	if _, err := Create(filepath.Join(dir, "tokens2.yaml"), "jane", time.Time{}); err == nil {
		t.Error("an identity of another form is taken")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

// TestCreateAtOnce: of several who add tokens at once each has one that counts.
func TestCreateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	made := make([]string, 16)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = Create(path, web, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, token := range made {
		if _, err := whoseIn(t, path, token, time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// TestExpires: the plugin refuses a token once it has expired, though nobody touches the file.
func TestExpires(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	made, err := Create(path, web, time.Now().Add(1500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), map[string]any{"file": path})
	for end := time.Now().Add(plugintest.Timeout); !strings.Contains(h.Authenticate(header(made)).Refusal, "the token has expired"); {
		if time.Now().After(end) {
			t.Fatal("it counts for ever")
		}
	}
}
