package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"
)

// server is the store as it is asked.
type server struct {
	config Config
	client *api.Client
	// token is what the role was logged in with, until it must be renewed; none for a token's file.
	token string
	until time.Time
}

func newServer(c Config) (*server, error) {
	tls, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.Proxy = tls, nil
	// Nothing of the environment counts, and who is refused asks again at the next look.
	client, err := api.NewClient(&api.Config{
		Address: c.Address, Timeout: c.Timeout, MaxRetries: 0,
		HttpClient: &http.Client{Transport: bounded{transport, c.Limits.Bytes}},
	})
	if err != nil {
		return nil, err
	}
	client.ClearToken()
	return &server{config: c, client: client}, nil
}

// bounded takes so many bytes of each answer.
type bounded struct {
	inner http.RoundTripper
	most  int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.inner.RoundTrip(r)
	if err == nil {
		answer.Body = &limited{answer.Body, b.most}
	}
	return answer, err
}

// CloseIdleConnections lets http.Client close those of the inner one.
func (b bounded) CloseIdleConnections() {
	if c, ok := b.inner.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// limited is a body that fails beyond a limit.
type limited struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		// One byte more tells an answer that ends here from one that goes on.
		if n, err := l.ReadCloser.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, errors.New("the answer is larger than limits.bytes")
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// login has the client show who asks. A role is logged in anew when half of its token's time is
// over.
func (s *server) login(ctx context.Context) error {
	role := s.config.AppRole
	if role == nil {
		text, err := os.ReadFile(s.config.TokenFile)
		if err != nil {
			return fmt.Errorf("tokenFile: %w", err)
		}
		s.client.SetToken(strings.TrimSpace(string(text)))
		return nil
	}
	if s.token != "" && time.Now().Before(s.until) {
		return nil
	}
	id, err := os.ReadFile(role.SecretIDFile)
	if err != nil {
		return fmt.Errorf("appRole.secretIDFile: %w", err)
	}
	s.client.ClearToken()
	method := role.Mount
	if method == "" {
		method = "approle"
	}
	got, err := s.client.Logical().WriteWithContext(ctx, path.Join("auth", method, "login"), map[string]any{
		"role_id": role.RoleID, "secret_id": strings.TrimSpace(string(id)),
	})
	switch {
	case err != nil:
		return fmt.Errorf("the role can't log in: %w", tidy(err))
	case got == nil || got.Auth == nil || got.Auth.ClientToken == "":
		return errors.New("the role can't log in: the server gives no token")
	}
	s.token = got.Auth.ClientToken
	s.until = time.Now().Add(time.Duration(got.Auth.LeaseDuration) * time.Second / 2)
	s.client.SetToken(s.token)
	return nil
}

// list returns the names in a folder: those of secrets, and those of folders, which end in a slash.
// A folder that is not there is empty.
func (s *server) list(ctx context.Context, folder string) ([]string, error) {
	got, err := s.client.Logical().ListWithContext(ctx, path.Join(s.config.Mount, "metadata", folder))
	if err != nil {
		return nil, fmt.Errorf("the names in %s can't be had: %w", place(s.config, folder), s.refused(err))
	}
	if got == nil {
		return nil, nil
	}
	keys, ok := got.Data["keys"].([]any)
	if !ok {
		return nil, fmt.Errorf("the names in %s can't be had: the server gives no list", place(s.config, folder))
	}
	var names []string
	for _, k := range keys {
		if name, ok := k.(string); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// found is a secret that was read: its values, or why it could not be read; neither: it is gone.
type found struct {
	values map[string][]byte
	err    error
}

// get reads a secret. The error says that nobody can be asked.
func (s *server) get(ctx context.Context, name string) (found, error) {
	got, err := s.client.KVv2(s.config.Mount).Get(ctx, name)
	var answer *api.ResponseError
	switch {
	case errors.Is(err, api.ErrSecretNotFound):
		return found{}, nil
	case errors.As(err, &answer) && answer.StatusCode == http.StatusForbidden:
		return found{err: errors.New("Vault does not let it be read: the token's policy needs read on " + path.Join(s.config.Mount, "data", name))}, nil
	case err != nil:
		return found{}, fmt.Errorf("%s can't be read: %w", place(s.config, name), s.refused(err))
	case got.Data == nil:
		return found{}, nil // its last version is deleted
	}
	f := found{values: map[string][]byte{}}
	for key, value := range got.Data {
		switch v := value.(type) {
		case string:
			f.values[key] = []byte(v)
		case json.Number, bool, nil:
			// nothing that a certificate is made of
		default:
			return found{err: fmt.Errorf("its value %s is no text", key)}, nil
		}
	}
	return f, nil
}

// refused notes that a token does not count any more, if that is what an error says.
func (s *server) refused(err error) error {
	var answer *api.ResponseError
	if errors.As(err, &answer) && answer.StatusCode == http.StatusForbidden {
		s.token = "" // a role logs in anew
	}
	return tidy(err)
}

// tidy is a server's error in a line.
func tidy(err error) error {
	var answer *api.ResponseError
	if !errors.As(err, &answer) {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	text := fmt.Sprintf("the server says %d", answer.StatusCode)
	if len(answer.Errors) > 0 {
		text += ": " + strings.Join(strings.Fields(strings.Join(answer.Errors, "; ")), " ")
	}
	return errors.New(text)
}

// place is what people look a secret or folder up by.
func place(c Config, name string) string { return "vault:" + path.Join(c.Mount, name) }
