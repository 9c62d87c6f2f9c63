package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// corePatience is how long control planes may take to say which they are: one that hangs must not
// keep commands from the others for longer.
const corePatience = 5 * time.Second

// found is a control plane of this user on this machine.
type found struct {
	api.Core
	socket string
	// silent is why it didn't say which it is; nil: it did. It can be named by its socket.
	silent error
}

// socketMeant returns the admin socket of the control plane that is meant, or of the only one of
// this user that runs.
func socketMeant(ctx context.Context, p *program, at which) (string, error) {
	at = meant(p, at)
	if at.admin != "" {
		return at.admin, nil
	}
	all, err := cores(ctx, p)
	if err != nil {
		return "", err
	}
	here := all
	if at.addr != "" {
		here = slices.DeleteFunc(slices.Clone(all), func(f found) bool { return !f.At(ctx, at.addr) })
	}
	switch {
	case len(here) == 1:
		return here[0].socket, nil
	case len(all) == 0:
		return "", fmt.Errorf("no control plane of this user runs here (looked for %s); start one with coxswain discovery, or give --admin SOCKET", sockets(p))
	case len(here) == 0:
		return "",
			usageError{fmt.Errorf("no control plane of this user has a port at %s; these run here, and a flag chooses:\n%s", at.addr, choices(all, false))}
	}
	// Those that one address doesn't tell apart are in different network namespaces: only their
	// sockets do.
	return "", usageError{
		fmt.Errorf("several control planes run here; say which is meant by one of these flags, or $%s:\n%s", addrVariable, choices(here, at.addr != "")),
	}
}

// sockets is where admin sockets are.
func sockets(p *program) string { return filepath.Join(p.runtimeDir(), "*", api.Socket) }

// cores returns the control planes of this user that run, by their sockets.
func cores(ctx context.Context, p *program) ([]found, error) {
	paths, err := filepath.Glob(sockets(p))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, corePatience)
	defer cancel()
	all := make([]*found, len(paths))
	var asking sync.WaitGroup
	for i, path := range paths {
		asking.Go(func() {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			if err != nil {
				return
			}
			_ = c.Close()
			all[i] = &found{socket: path}
			_, _, all[i].silent = askSocket(ctx, path, http.MethodGet, "/core", nil, &all[i].Core)
		})
	}
	asking.Wait()
	var live []found
	for _, f := range all {
		if f != nil {
			live = append(live, *f)
		}
	}
	return live, nil
}

// orElsewhere adds to the error of an address where nothing listens which control planes there are.
func orElsewhere(ctx context.Context, p *program, err error) error {
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	if all, _ := cores(ctx, p); len(all) > 0 {
		return fmt.Errorf("%w; on this machine there run:\n%s", err, choices(all, false))
	}
	return fmt.Errorf("%w; no control plane runs on this machine: start one (coxswain discovery), or say where one is (--addr, $%s)", err, addrVariable)
}

// choices has a line for each, with what to type.
func choices(all []found, bySocket bool) string {
	var lines []string
	for _, f := range all {
		flag := "--addr " + f.Address()
		if f.Address() == "" || bySocket {
			flag = "--admin " + f.socket
		}
		line := "  " + flag
		switch {
		case f.silent != nil:
			line += fmt.Sprintf("   it doesn't say which it is: %v", f.silent)
		case f.PID > 0:
			line += fmt.Sprintf("   process %d, %s", f.PID, cmp.Or(f.File, "the built-in plugins"))
		}
		if grpc := cmp.Or(f.Ports["grpc"], f.Ports["secureGRPC"]); grpc != "" {
			line += ", xDS at " + grpc
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
