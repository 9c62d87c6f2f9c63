//go:build wasip1

package eureka

import (
	"context"
	"encoding/base64"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// client asks by way of the HTTP calls that the entry's allow.http grants.
type client struct{ config *Config }

// hasFiles: certificates can't be given to the runner.
const hasFiles = false

func newClient(c *Config) (*client, error) { return &client{c}, nil }

func (*client) close() {}

// get asks a server, and returns what it answered.
func (c *client) get(ctx context.Context, server, path string) ([]byte, error) {
	r := sdk.Request{URL: server + path, Headers: map[string]string{"Accept": "application/json"}, Timeout: c.config.Timeout}
	password := ""
	if c.config.Username != "" {
		var err error
		if password, err = c.config.Secret(); err != nil {
			return nil, err
		}
		r.Headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.config.Username+":"+password))
	}
	answer, err := sdk.Fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	if answer.Status != 200 {
		return nil, &refusal{answer.Status, said.Hide(string(answer.Body), c.config.Username+":"+password, password)}
	}
	return answer.Body, nil
}
