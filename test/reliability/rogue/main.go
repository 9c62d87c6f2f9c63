// Command rogue is a plugin that serves as it should, until it does what its argument says.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// config is a registry's: one service with one endpoint, and a file that says when to begin.
type config struct {
	Host   string
	Port   int
	Begin  string
	Secret string
}

func main() {
	what := os.Args[1]
	if what == "patch" {
		sdk.Serve(patch())
	}
	sdk.Serve(sdk.RegistryPlugin{
		Name: what, Version: "1", Publishes: []string{state.Services, state.Endpoints},
		New: sdk.WithRawConfig(nil, func(text []byte) (sdk.Registry, error) { return registry(what, text) }),
	})
}

// patch leaves clusters as they are.
func patch() sdk.PatchPlugin {
	same := func(_ *state.State, _ string, _ map[string]string, all []sdk.Resource) ([]sdk.Resource, []string, error) {
		return all, nil, nil
	}
	return sdk.PatchPlugin{
		Name: "patch", Version: "1", Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}},
		New: sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(same), nil }),
	}
}

func registry(what string, text []byte) (sdk.Registry, error) {
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	if what == "refuses" {
		return nil, fmt.Errorf("nobody likes %s", text)
	}
	return sdk.RegistryFunc(func(ctx context.Context, out sdk.Publisher) error {
		list := sdk.NewList(out)
		s := &sdk.Service{Host: c.Host, Namespace: "test", Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
		e := &sdk.Endpoint{Host: s.Host, Namespace: s.Namespace, PortName: "http", ServicePort: 80, Address: "127.0.0.1", Port: uint32(c.Port)}
		if err := list.Set([]*sdk.Service{s}, []*sdk.Endpoint{e}); err != nil {
			return err
		}
		for c.Begin != "" && ctx.Err() == nil {
			if _, err := os.Stat(c.Begin); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		switch what {
		case "deletes":
			return rest(ctx, list.Set(nil, nil))
		case "loses-endpoints":
			return rest(ctx, list.Set([]*sdk.Service{s}, nil))
		case "stderr":
			return shout(ctx)
		case "line":
			return rest(ctx, line())
		case "tells":
			fmt.Fprintf(os.Stderr, "my config is %s\n", text)
			return rest(ctx, nil)
		case "spies":
			spy(filepath.Dir(c.Begin))
		case "offspring":
			return rest(ctx, offspring(fmt.Sprintf("299.%d", c.Port)))
		}
		return rest(ctx, nil)
	}), nil
}

// rest does no more.
func rest(ctx context.Context, err error) error {
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// shout writes 256 MiB to standard error.
func shout(ctx context.Context) error {
	text := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 1000)
	for written := 0; written < 256<<20 && ctx.Err() == nil; {
		n, err := os.Stderr.Write(text)
		if err != nil {
			return err
		}
		written += n
	}
	return rest(ctx, nil)
}

// line writes one of 64 MiB.
func line() error {
	text := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		if _, err := os.Stderr.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// offspring starts processes that leave its session and its process group, for five minutes.
func offspring(seconds string) error {
	for range 5 {
		cmd := exec.Command("/bin/sleep", seconds)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	return nil
}

// spy looks into the core and calls it, and tells what it could do. run is below dir.
func spy(dir string) {
	core := fmt.Sprintf("/proc/%d/", os.Getppid())
	tell := func(what string, err error) {
		if err == nil {
			what = "spied: " + what
		} else {
			what = fmt.Sprintf("in vain: %s: %v", what, err)
		}
		fmt.Fprintln(os.Stderr, what)
	}
	_, err := os.ReadFile(core + "environ")
	tell("environment", err)
	f, err := os.OpenFile(core+"mem", os.O_RDWR, 0)
	tell("memory", err)
	if err == nil {
		_ = f.Close()
	}
	_, err = os.Readlink(core + "fd/0")
	tell("open files", err)
	tell("signals", syscall.Kill(os.Getppid(), syscall.SIGURG)) // which Go programs don't mind
	sockets, _ := filepath.Glob(filepath.Join(dir, "run", "coxswain", "*", "admin.sock"))
	for _, socket := range sockets {
		tell("admin socket", call(socket))
	}
}

// call asks an HTTP server on a Unix socket for anything.
func call(socket string) error {
	c, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err = io.WriteString(c, "GET /plugins HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	switch {
	case err != nil:
		return err
	case !bytes.Contains(answer, []byte(" 200 ")):
		return fmt.Errorf("%.40q", answer)
	}
	return nil
}
