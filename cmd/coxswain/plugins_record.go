package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func pluginRecordCommand(p *program) *cobra.Command {
	var at which
	var during time.Duration
	limit := int64(64 << 20)
	c := &cobra.Command{
		Use:   "record NAME FILE",
		Short: "Record what a plugin of a running control plane and the core say to each other",
		Long: `Record what a plugin of a running control plane and the core say to each other, until it is interrupted, --for is over or the file is full. The
plugin is started anew for it, as "coxswain plugins restart --force" does, so that the recording has whole sessions. Configs, credentials, HTTP bodies and
what sensitive types hold are masked; of other rows and resources what is secret in them is, by letters x.`,
		Example: `  coxswain plugins record inventory inventory.jsonl --for 30s
  coxswain plugins replay inventory.jsonl --against ./inventory-v2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errors.New("coxswain plugins record wants NAME and FILE")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if during > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, during)
				defer cancel()
			}
			return recordTo(ctx, p, at, args[0], args[1], limit)
		},
	}
	at.flags(c)
	c.Flags().DurationVar(&during, "for", 0, "how long; 0: until it is interrupted")
	c.Flags().Int64Var(&limit, "limit", limit, "how large FILE may become, in bytes")
	return c
}

func recordTo(ctx context.Context, p *program, at which, name, file string, limit int64) error {
	socket, err := socketMeant(ctx, p, at)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("http://coxswain/plugins/%s/record?limit=%d", url.PathEscape(name), limit)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, http.NoBody)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s", name, bytes.TrimSpace(text))
	}
	return store(ctx, p.out, resp.Body, file)
}

// store copies a recording into a file that only this user may read, until ctx or the recording
// ends.
func store(ctx context.Context, shown io.Writer, body io.Reader, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, body)
	ended := "the recording ended: the limit is reached, or the control plane is gone"
	if ctx.Err() != nil {
		ended, err = "", nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(shown, "%s: %d bytes\n", file, n)
	if ended != "" {
		fmt.Fprintln(shown, ended)
	}
	return nil
}
