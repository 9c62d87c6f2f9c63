package token

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

const (
	secret = "9f1c2a7e0b6d4c35a8e1"
	other  = "4f5e6d7c8b9a0f1e2d3c"
	web    = "spiffe://cluster.local/ns/shop/sa/web"
	cart   = "spiffe://cluster.local/ns/shop/sa/cart"
)

func TestWhose(t *testing.T) {
	sum := sha256.Sum256([]byte(other))
	all, err := decode([]byte(`
tokens:
  - token: ` + secret + `
    identities: [` + web + `]
  - sha256: "` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"
    identities: &ids [` + cart + `, ` + web + `]
  - {token: "1234567890123456", identities: *ids}
`))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string][]string{
		secret: {web}, other: {cart, web}, "1234567890123456": {cart, web}, "": nil, secret + "0": nil, secret[1:]: nil,
		hex.EncodeToString(sum[:]): nil, // the hash is no token
	} {
		if got, err := all.whose(token, time.Now()); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v", token, got)
		}
	}
	if got, err := (tokens{}).whose(secret, time.Now()); got != nil || !errors.Is(err, errUnknown) {
		t.Error(got, err)
	}
}

func TestMistakesHavePlacesAndNoTokens(t *testing.T) {
	entry := "tokens:\n  - token: " + secret + "\n    identities: [" + web + "]\n"
	for _, c := range []struct{ text, want string }{
		{"", "1:1: the file is empty; write `tokens: []`"},
		{"# nothing\n", "1:1: the file is empty"},
		{"tokens:\n", "1:1: the file must have a list `tokens`"},
		{"{}", "1:1: the file must have a list `tokens`"},
		{"- token: " + secret, "1:1: the file must be a mapping with tokens"},
		{"tokens: {" + secret + ": [" + web + "]}", "1:1: the file must have a list"},
		{"tokens:\n  - " + secret + ": [" + web + "]", "2:5: unknown key; an entry may have token, sha256, identities"},
		{"tokens:\n  - " + secret, "2:5: an entry must be a mapping with token, sha256, identities"},
		{"tokens: [{token: " + secret + ", expires: tomorrow, identities: [" + web + "]}]", ": expires must be a time such as"},
		{"token: []\n", "1:1: unknown key; the file may have tokens"},
		{"tokens: []\ntokens: []\n", "2:1: tokens is given twice"},
		{entry + "---\n" + entry, "5:1: a second document"},
		{entry + "  - token: " + secret + "\n    identities: [" + cart + "]\n", "4:5: the same token stands in line 2 already"},
		{"tokens: [{token: *" + secret + "}]", "1:1: not YAML"},
		{"tokens: [{token: \"" + secret + "}]", "not YAML"},
		{"tokens:\n - token: " + secret + "\n  identities: []", "not YAML"},
		{"tokens: [{token: 123456789012345678, identities: [" + web + "]}]", "1:18: a token must be a string; put it into quotes"},
		{"tokens: [{token: [" + secret + "], identities: [" + web + "]}]", "1:18: a token must be a string"},
		{"tokens: [{token: hunter2, identities: [" + web + "]}]", "1:18: a token must have 16 to 16384 characters"},
		{"tokens: [{token: '" + secret + " x', identities: [" + web + "]}]", "1:18: a token must be of printable ASCII"},
		{"tokens: [{token: " + secret + "é, identities: [" + web + "]}]", "1:18: a token must be of printable ASCII"},
		{"tokens: [{sha256: " + secret + ", identities: [" + web + "]}]", "1:19: sha256 must be 64 hexadecimal digits"},
		{"tokens: [{sha256: [], identities: [" + web + "]}]", "1:19: sha256 must be"},
		{"tokens: [{token: " + secret + ", sha256: " + secret + ", identities: [" + web + "]}]", "1:10: an entry must have either token or sha256"},
		{"tokens: [{identities: [" + web + "]}]", "1:10: an entry must have either token or sha256"},
		{"tokens: [{token: " + secret + "}]", "1:10: an entry must have a list `identities`"},
		{"tokens: [{token: " + secret + ", identities: []}]", "1:10: an entry must have a list `identities` that isn't empty"},
		{"tokens: [{token: " + secret + ", identities: " + web + "}]", "1:10: an entry must have a list `identities`"},
		{"tokens: [{token: " + other + ", identities: [" + secret + "]}]", "an identity must have the form spiffe://"},
		{"tokens: [{token: " + other + ", identities: [spiffe://a/ns//sa/b]}]", "an identity must have the form spiffe://"},
		{"tokens: [{token: " + other + ", identities: [[" + web + "]]}]", "an identity must have the form spiffe://"},
		{"tokens: &a [*a]", "1:9: an entry must be a mapping"},
	} {
		_, err := decode([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
			continue
		}
		for _, s := range []string{secret, other, "hunter2"} {
			if strings.Contains(err.Error(), s) {
				t.Errorf("a secret got out: %v", err)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, dir, "bad.yaml", "tokens: [{token: "+secret+"}]")
	for _, c := range []struct{ config, field, reason string }{
		{`{}`, "file", "is missing"},
		{`{"fil": "x"}`, "fil", `did you mean "file"?`},
		{`{"file": "` + dir + `/none.yaml"}`, "file", "no such file"},
		{`{"file": "` + dir + `"}`, "file", "is no file"},
		{`{"file": "` + bad + `"}`, "file", bad + ":1:10: an entry must have a list `identities`"},
		{`{"file": "x", "settle": "0s"}`, "settle", "0s is less than 1ms"},
		{`{"file": "x", "settle": "soon"}`, "settle", "no duration"},
		{`{"file": "x", "rescan": "-1s"}`, "rescan", "no duration"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s: %s", c.config, field, reason)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func entries(pairs ...string) string {
	text := "tokens:\n"
	if len(pairs) == 0 {
		text = "tokens: []\n"
	}
	for i := 0; i < len(pairs); i += 2 {
		text += "  - token: " + pairs[i] + "\n    identities: [" + pairs[i+1] + "]\n"
	}
	return text
}

func header(token string) sdk.Credentials {
	return sdk.Credentials{Headers: map[string]string{"authorization": "Bearer " + token}}
}

func TestHeaders(t *testing.T) {
	h := plugintest.Start(t, Plugin(), map[string]string{"file": write(t, t.TempDir(), "t.yaml", entries(secret, web))})
	for _, c := range []struct{ header, refusal string }{
		{"", "no authorization header"},
		{"Basic " + secret, "not of the form `Bearer TOKEN`"},
		{"Bearer", "not of the form"},
		{"Bearer  ", "not of the form"},
		{secret, "not of the form"},
		{"Bearer " + other, "the token is unknown"},
		{"Bearer " + secret + " x", "the token is unknown"},
		{"Bearer " + secret, ""},
		{"bearer   " + secret, ""},
	} {
		got := h.Authenticate(sdk.Credentials{Headers: map[string]string{"authorization": c.header}})
		if c.refusal == "" && !slices.Equal(got.Identities, []string{web}) || !strings.Contains(got.Refusal, c.refusal) ||
			c.refusal != "" && (got.Refusal == "" || len(got.Identities) > 0) {
			t.Errorf("%q: %v", c.header, got)
		}
		if strings.Contains(got.Refusal, secret) || strings.Contains(got.Refusal, other) {
			t.Errorf("a secret got out: %s", got.Refusal)
		}
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(plugintest.Timeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func knows(h *plugintest.Harness, token string) bool {
	return len(h.Authenticate(header(token)).Identities) > 0
}

func logged(h *plugintest.Harness, text string) bool {
	return slices.ContainsFunc(h.Logs(), func(l string) bool { return strings.Contains(l, text) })
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "t.yaml", entries(secret, web))
	h := plugintest.Start(t, Plugin(), map[string]string{"file": file, "rescan": "50ms"})
	if !knows(h, secret) || knows(h, other) {
		t.Fatal("it doesn't know what the file says")
	}
	write(t, dir, "t.yaml", entries(other, cart))
	eventually(t, "the file counts", func() bool { return knows(h, other) && !knows(h, secret) })

	// A mistake keeps what was good, and is told once.
	write(t, dir, "t.yaml", entries(secret, "nobody"))
	eventually(t, "the mistake is logged", func() bool { return logged(h, "t.yaml:3:18: an identity must have the form") })
	if !knows(h, other) || knows(h, secret) {
		t.Error("the last good tokens don't count")
	}
	// A file that is gone does, too; and one that is put in its place by a rename counts.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is logged", func() bool { return logged(h, "no such file") })
	if !knows(h, other) {
		t.Error("the last good tokens don't count")
	}
	if err := os.Rename(write(t, dir, "new.yaml", entries(secret, web)), file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new file counts", func() bool { return knows(h, secret) && !knows(h, other) })
	write(t, dir, "t.yaml", "")
	eventually(t, "the empty file is logged", func() bool { return logged(h, "the file is empty") })
	if !knows(h, secret) {
		t.Error("an empty file took the tokens away")
	}
	write(t, dir, "t.yaml", entries())
	eventually(t, "nobody is known", func() bool { return !knows(h, secret) })
	for _, line := range h.Logs() {
		if strings.Contains(line, secret) || strings.Contains(line, other) {
			t.Errorf("a secret got out: %s", line)
		}
	}
	n := 0
	for _, line := range h.Logs() {
		if strings.Contains(line, "an identity must have the form") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the mistake was logged %d times: %q", n, h.Logs())
	}
}

// TestMountedSecret follows a volume as Kubernetes swaps it: the file is a link into ..data, which
// is a link too.
func TestMountedSecret(t *testing.T) {
	dir := t.TempDir()
	put := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version), "t.yaml", text)
		link := filepath.Join(dir, "..tmp")
		if err := os.Symlink(version, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", entries(secret, web))
	file := filepath.Join(dir, "t.yaml")
	if err := os.Symlink("..data/t.yaml", file); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, Plugin(), map[string]string{"file": file, "rescan": "0s"})
	// The watch begins after the plugin is ready; a change that comes before it is seen at once.
	put("..2", entries(other, cart))
	eventually(t, "the new version counts", func() bool { return knows(h, other) && !knows(h, secret) })
}
