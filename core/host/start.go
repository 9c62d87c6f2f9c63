package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/host/cgroup"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mask"
)

// start starts an entry's process, with its socket below a private directory, in a control group,
// if it has one.
func (h *Host) start(ctx context.Context, s *slot, private string, group *cgroup.Group) (Running, error) {
	e := s.runs()
	l, release, err := h.launcher.launch(e)
	if err != nil {
		return nil, err
	}
	defer release()
	l.Log, l.SocketDir = s.log, private
	if group != nil {
		l.Group = group.Dir()
	}
	if l.User, err = runAs(e); err != nil {
		return nil, err
	}
	if err := h.launcher.admit(e, &l, private); err != nil {
		return nil, err
	}
	if l.Sockets, err = h.sockets.of(e); err != nil {
		return nil, err
	}
	confine(e, &l)
	remove, err := pinFiles(s, &l, private)
	if err != nil {
		return nil, err
	}
	running, err := h.cfg.Starter.Start(ctx, l)
	if err != nil {
		remove()
		return nil, err
	}
	go func() {
		<-running.Done()
		remove()
	}()
	return running, nil
}

// launcher says what to run for an entry, from what the entry says and what there is on this
// machine. It starts nothing.
type launcher struct {
	// set is whose directory relative paths start at.
	set *manifest.Set
	// exe is the program that runs built-ins and modules, self the same, opened at the beginning;
	// nil where only its path is known.
	exe  string
	self *os.File
	// runtimeDir has the compiled modules.
	runtimeDir string
	// variables are the core's environment, as NAME=value.
	variables []string
	// memory is how much a process may use whose entry doesn't say; 0: no limit.
	memory manifest.Size
	// known learns what is secret; may be nil.
	known *mask.Secrets
}

func (c Config) launcher() *launcher {
	return &launcher{set: c.Set, exe: c.Exe, runtimeDir: c.RuntimeDir, variables: c.Environ, memory: c.Memory, known: c.Secrets}
}

// launch says what to run for an entry. release is called once the process runs.
func (ln *launcher) launch(e *manifest.Entry) (l Launch, release func(), err error) {
	if err := e.Trusted(); err != nil {
		return l, nil, err
	}
	_, _ = ln.fill(e) // What is secret is known before the process can say it; what is wrong is said when it is configured.
	dir, err := filepath.Abs(ln.set.Dir())
	if err != nil {
		return l, nil, err
	}
	l = Launch{Name: e.Name, Dir: dir, Timeout: e.Limits.Start, OpenFiles: e.Limits.OpenFiles}
	release = func() {}
	switch {
	case e.Wasm != nil:
		return ln.runner(e, l)
	case e.Process == nil:
		l.Path, l.Program, l.Args = ln.exe, ln.self, []string{"plugin", e.Builtin}
		l.Env = ln.tuned(e)
	default:
		l.Args, l.TLS = e.Process.Args, e.Process.TLS != "off"
		l.Env = ln.inherited(e)
		for _, name := range slices.Sorted(maps.Keys(e.Process.Env)) {
			l.Env = append(l.Env, name+"="+e.Process.Env[name])
		}
		l.Env = limited(ln.allowance(e), l.Env)
		var is loaded
		if is, err = ln.program(e, dir); err == nil {
			l.Path, l.Program, release = is.path, is.file, is.release
		}
	}
	return l, release, err
}

// Find looks for a command in the core's PATH.
func (h *Host) Find(command string) (string, error) { return h.launcher.find(command) }

func (ln *launcher) find(command string) (string, error) {
	return find(command, ln.set.Dir(), ln.environ("PATH"))
}

// program finds a process's program and checks what is pinned.
func (ln *launcher) program(e *manifest.Entry, dir string) (loaded, error) {
	path, err := find(e.Process.Command, dir, ln.environ("PATH"))
	if err != nil {
		return loaded{}, err
	}
	if e.SHA256 == "" {
		return loaded{path: path, release: func() {}}, nil
	}
	return pin(path, e.SHA256)
}

// inherited is what a plugin gets of the core's environment: what the entry allows, and more.
func (ln *launcher) inherited(e *manifest.Entry, more ...string) []string {
	if a := e.Allowed(); a != nil {
		more = append(more, a.Env...)
	}
	var env []string
	for _, name := range more {
		if value := ln.environ(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// tuned is what this binary's own children get: what is inherited, with the core's settings of Go's
// runtime, and for those that are built in the way to a Kubernetes API server, and which
// authorities servers are checked with. The entry's limit of memory takes the place of the core's.
func (ln *launcher) tuned(e *manifest.Entry) []string {
	names := []string{"GOMAXPROCS", "GOGC", "COXSWAIN_GOGC", "GORACE"}
	if e.Builtin != "" {
		names = append(names, builtinVariables...)
	}
	if limit := ln.allowance(e); e.Limits.Memory > 0 || limit > 0 && ln.environ("GOMEMLIMIT") == "" {
		return append(ln.inherited(e, names...), goMemory(limit))
	}
	return ln.inherited(e, append(names, "GOMEMLIMIT")...)
}

// builtinVariables say where an API server is, by a file, in a pod, and through a proxy, whether
// anything may be written there, and where the system's roots are. Sources:
// Kubernetes, "Organizing Cluster Access Using kubeconfig Files", "Accessing the Kubernetes API
// from a Pod"; Go, package crypto/x509, SystemCertPool.
var builtinVariables = []string{
	"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
	ReadOnlyVariable, "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// ReadOnlyVariable tells plugins that are built in, if it is "true", to write in no cluster,
// whatever their config says.
const ReadOnlyVariable = "COXSWAIN_READ_ONLY"

// limited adds what a Go program heeds of a limit of memory, unless its environment says so itself.
func limited(limit manifest.Size, env []string) []string {
	declares := slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "GOMEMLIMIT=") })
	if limit == 0 || declares {
		return env
	}
	return append(env, goMemory(limit))
}

func (ln *launcher) environ(name string) string {
	for _, pair := range ln.variables {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// find looks for a command as a shell would: a name without a slash in PATH, anything else as a
// path, relative to dir.
func find(command, dir, path string) (string, error) {
	if strings.Contains(command, "/") {
		file := manifest.Under(dir, command)
		return file, executable(file)
	}
	for _, place := range filepath.SplitList(path) {
		if file := filepath.Join(place, command); filepath.IsAbs(file) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %s is not in PATH; give a path with a slash, absolute or relative to plugins.yaml", command)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %s does not exist; relative paths start at the directory of plugins.yaml", file)
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("command %s is not an executable file; chmod +x it", file)
	}
	return nil
}
