package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

func uiCommand(p *program) *cobra.Command {
	var addr string
	var open bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Print the address of the page that shows how a control plane is, or open it",
		Long: `Print the address of the page that shows how a control plane is, or open it in a browser (--open).

The page is on the monitoring port, for those who may see debug pages: on its own machine for everybody, from elsewhere through a tunnel, such as
kubectl port-forward deployment/coxswain -n istio-system 15014, and then here. It changes nothing, unless the control plane runs with --uiActions:
then the address has a code that logs in whoever opens it first, within a minute, as the user who gave this command. Only those may have one who may
give commands that change plugins.`,
		Example: `  coxswain ui
  coxswain ui --open`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := get(c.Context(), addr, "/ui/"); err != nil {
				return orElsewhere(c.Context(), p, err)
			}
			host, _, err := net.SplitHostPort(strings.TrimPrefix(addr, "https://"))
			if open && (err != nil || host == "") {
				return usageError{errors.New("--open wants --addr HOST:PORT")}
			}
			url := base(addr) + "/ui/"
			code, err := loginCode(c.Context(), p, addr)
			if err != nil {
				return err
			}
			if code == "" {
				fmt.Fprintln(p.out, url)
			} else if !open {
				fmt.Fprintln(p.out, url+"#/login?code="+code)
			}
			if !open {
				return nil
			}
			if code != "" {
				if url, err = redirection(p, url+"#/login?code="+code); err != nil {
					return err
				}
				fmt.Fprintln(p.out, "the page opens, and logs in")
			}
			with := cmp.Or(map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS], "xdg-open")
			if err := exec.CommandContext(c.Context(), with, url).Run(); err != nil {
				return fmt.Errorf("the address could not be opened by %s: %w", with, err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&addr, "addr", settings.Defaults().MonitoringAddr, "address of the monitoring port")
	c.Flags().BoolVar(&open, "open", false, "open it in a browser")
	return c
}

// loginCode is a code for a login, by the admin socket; empty: the page changes nothing, or the
// control plane is elsewhere or another user's, whose page this one may look at.
func loginCode(ctx context.Context, p *program, addr string) (string, error) {
	var out api.Login
	if _, _, err := ask(ctx, p, which{addr: strings.TrimPrefix(addr, "https://")}, http.MethodPost, "/ui/code", nil, &out); err != nil {
		return "", nil //nolint:nilerr // without a login the page is for reading
	}
	if out.Error != "" {
		return "", errors.New(out.Error)
	}
	return out.Code, nil
}

// redirection is a file that leads to an address and that only this user may read: the arguments of
// a program that opens it everybody sees.
func redirection(p *program, url string) (string, error) {
	if err := os.MkdirAll(p.runtimeDir(), 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(p.runtimeDir(), "ui.html")
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><title>Coxswain</title><meta http-equiv=refresh content=\"0; url=%s\">\n", html.EscapeString(url))
	return "file://" + name, errors.Join(err, f.Close())
}
