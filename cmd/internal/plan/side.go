package plan

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Side is a control plane that a plan starts, on loopback alone.
type Side struct {
	// Flag is what says what it serves, for errors.
	Flag string
	// Program is the path of a coxswain; Dir has the resources that it serves.
	Program, Dir string
	// MeshConfig and NetworksConfig are files; empty: none, or those of Inputs. Plugins is a
	// plugins.yaml; empty: that of Inputs, or the built-in set.
	MeshConfig, NetworksConfig, Plugins string
	// Inputs are settings of what runs and what it reads, by their names; nil: the defaults for
	// files alone.
	Inputs map[string]string
	// Environ is that of the process. What settings it has of a control plane doesn't count.
	Environ []string
}

func (s Side) named() string { return s.Dir }

// args is its command line. What runs besides the built-in set for files might write: a trial does
// not.
func (s Side) args() []string {
	const loopback = "127.0.0.1:0"
	args := []string{"discovery", "--logFormat", "json", "--grpcAddr", loopback, "--httpAddr", loopback, "--monitoringAddr", "", "--secureGRPCAddr", ""}
	inputs := map[string]string{}
	if s.Inputs == nil {
		inputs["registries"] = ""
	}
	maps.Copy(inputs, s.Inputs)
	for name, value := range map[string]string{"configDir": s.Dir, "meshConfig": s.MeshConfig, "networksConfig": s.NetworksConfig, "plugins": s.Plugins} {
		if value != "" {
			inputs[name] = value
		}
	}
	if s.Dir != "" && s.Plugins == "" { // an export has the order of whom it is of; a set says so itself
		inputs["trustCreationTimestamp"] = "true"
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		args = append(args, "--"+name+"="+inputs[name])
	}
	if s.Inputs != nil || s.Plugins != "" {
		args = append(args, "--trial")
	}
	return args
}

// sideAtOnce is how many proxies ask a control plane at once.
const sideAtOnce = 8

// answers starts the side, and returns what it answers to each proxy, and what is wrong with its
// objects.
func (s Side) answers(ctx context.Context, r run) (all []answers, wrong []Fault, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the control plane for %s %s: %w", s.Flag, s.Dir, err)
		}
	}()
	c, err := s.start(ctx, r.patience)
	if err != nil {
		return nil, nil, err
	}
	defer c.stop()
	if all, err = c.asked(ctx, r); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.patience, fmt.Errorf("no answer in %s (--timeout)", r.patience))
	defer cancel()
	wrong, err = c.faults(ctx, s.Dir)
	return all, wrong, err
}

// asked returns what it answers to each proxy.
func (c *running) asked(ctx context.Context, r run) (all []answers, err error) {
	const largest = 1 << 30
	conn, err := grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return r.each(ctx, sideAtOnce, func(ctx context.Context, p Proxy) (answers, error) {
		return ask(ctx, conn, p, r.patience, r.kept.keep)
	})
}

// running is a control plane that is ready.
type running struct {
	grpc, http string
	stop       func()
}

// grace is how long a control plane may take to end.
const grace = 10 * time.Second

// start starts it and waits until it serves, patience long at most.
func (s Side) start(ctx context.Context, patience time.Duration) (*running, error) {
	if info, err := os.Stat(s.Dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: a directory is wanted, with all of the configuration, as what is not in it counts as deleted", s.Dir)
	}
	private, err := os.MkdirTemp("", "plan")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, s.Program, s.args()...)
	cmd.Env = append(slices.DeleteFunc(slices.Clone(s.Environ), func(e string) bool {
		return strings.HasPrefix(e, "COXSWAIN_") || strings.HasPrefix(e, "XDG_RUNTIME_DIR=")
	}), "XDG_RUNTIME_DIR="+private)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	tie(cmd)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Program, err), os.RemoveAll(private))
	}
	said := make(chan line)
	read := make(chan struct{})
	go func() { defer close(read); lines(log, said, ctx.Done()) }()
	r := &running{stop: func() {
		cancel()
		<-read
		_ = cmd.Wait()
		_ = os.RemoveAll(private)
	}}
	if err := r.ready(ctx, said, patience); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// line of a log.
type line struct{ Level, Msg, Port, Address, Error, raw string }

// lines says each line of a log, to the end of it; when done is closed nobody listens any more.
func lines(log io.Reader, said chan<- line, done <-chan struct{}) {
	defer close(said)
	const longest = 1 << 20
	s := bufio.NewScanner(log)
	s.Buffer(nil, longest)
	for s.Scan() {
		l := line{raw: s.Text()}
		_ = json.Unmarshal(s.Bytes(), &l) // what is no JSON has no fields
		select {
		case said <- l:
		case <-done:
		}
	}
	_, _ = io.Copy(io.Discard, log)
}

// ready waits for both ports: that of xDS opens when all is read. The log is read on until the end.
func (r *running) ready(ctx context.Context, said <-chan line, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	var last []string
	for r.grpc == "" || r.http == "" {
		select {
		case l, more := <-said:
			switch {
			case !more:
				return fmt.Errorf("it ended before it served: %s", strings.Join(last, "\n"))
			case l.Msg == "listening" && l.Port == "grpc":
				r.grpc = l.Address
			case l.Msg == "listening" && l.Port == "http":
				r.http = l.Address
			case l.Level == "ERROR" || l.Level == "WARN" || l.Msg == "":
				const most = 5
				last = append(last[max(0, len(last)-most+1):], l.raw)
			}
		case <-late.C:
			return fmt.Errorf("it does not serve after %s (--timeout); it said last: %s", patience, strings.Join(last, "\n"))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		for range said { // so that it can write on
		}
	}()
	return nil
}

// Fault is what is wrong with an object of a side.
type Fault struct {
	Kind, Name, State string
	Faults            []admin.Fault
}

// faults returns the objects of which something is wrong. Their files are named as the directory
// is.
func (r *running) faults(ctx context.Context, dir string) (wrong []Fault, err error) {
	objects, err := r.objects(ctx)
	if err != nil {
		return nil, err
	}
	return FaultsOf(objects, dir)
}

// objects returns the config objects that it has.
func (r *running) objects(ctx context.Context) (objects []admin.Object, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.http+"/debug/configs", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&objects); err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL, err)
	}
	return objects, nil
}

// FaultsOf returns the objects of which something is wrong. Their files are named as the directory
// that they were read from is; empty: they stay.
func FaultsOf(objects []admin.Object, dir string) (wrong []Fault, err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if len(o.Faults) > 0 {
			for i := range o.Faults {
				f := &o.Faults[i]
				f.Since = time.Time{}
				if below, ok := strings.CutPrefix(f.File, whole+string(filepath.Separator)); ok && dir != "" {
					f.File = filepath.Join(dir, below)
				}
			}
			wrong = append(wrong, Fault{o.Kind, o.Key, o.State, o.Faults})
		}
	}
	return wrong, nil
}
