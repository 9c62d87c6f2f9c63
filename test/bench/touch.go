package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// post tells a server with a control port to change: a process of its own, as for servers that
// watch files.
func post(ctx context.Context, urls []string) error {
	for _, url := range urls {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
	}
	return nil
}

// remove deletes one of the services that were added to the mesh in a directory.
func remove(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("remove wants the mesh's directory")
	}
	added, err := filepath.Glob(filepath.Join(args[0], "extra-*.yaml"))
	if err != nil {
		return err
	}
	if len(added) == 0 {
		return fmt.Errorf("%s: no service was added", args[0])
	}
	return os.Remove(added[0])
}
