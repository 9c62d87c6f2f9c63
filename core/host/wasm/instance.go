package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// instance is one run of a module, on a goroutine of its own.
type instance struct {
	module *module
	stdio  *stdio
	clock  clock
	grants *grants
	// mounts is how many directories it has, those of grants.
	mounts int
	pages  atomic.Uint32 // of memory, when it ended
}

type instanceKey struct{}

// start starts an instance; read is told the frames that it has read. Its end is that of its stdio.
func (m *module) start(ctx context.Context, g *grants, stderr io.Writer, read func([]byte)) *instance {
	i := &instance{module: m, stdio: newStdio(read), grants: g}
	ctx = context.WithValue(context.WithoutCancel(ctx), instanceKey{}, i)
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(reserve))
	go func() { i.stdio.end(i.run(ctx, &lines{to: stderr})) }()
	return i
}

// run runs the module and says why it ended; nil if it did so in good order.
func (i *instance) run(ctx context.Context, stderr *lines) (err error) {
	defer stderr.flush()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(filepath.Base(i.module.file)).
		WithStdin(i.stdio).WithStdout(i.stdio).WithStderr(stderr).WithRandSource(rand.Reader)
	config, i.mounts = i.grants.mount(i.clock.set(config, i.grants.Clock))
	mod, err := i.module.runtime.InstantiateModule(ctx, i.module.compiled, config)
	if err != nil {
		return fmt.Errorf("the module can't be instantiated: %w", err)
	}
	defer mod.Close(ctx)
	main := mod.ExportedFunction("_start")
	_, err = main.Call(ctx)
	i.measure(mod)
	return i.reason(err)
}

func (i *instance) measure(mod api.Module) {
	if m := mod.Memory(); m != nil {
		size, _ := m.Grow(0)
		i.pages.Store(size)
	}
}

// reason puts the module's end into words.
func (i *instance) reason(err error) error {
	var exit *sys.ExitError
	switch {
	case err == nil, errors.Is(err, errStopped):
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == 0:
		return nil
	case errors.As(err, &exit):
		err = fmt.Errorf("the module ended with status %d", exit.ExitCode())
	default:
		err = fmt.Errorf("the module trapped: %s", brief(err))
	}
	if used := uint64(i.pages.Load()) * pageBytes; used > i.module.memory/10*9 {
		err = session.Crossed("wasm.memory", "%w; it had used %d of the %d MiB of memory that it may have (wasm.memory)", err, used>>20, i.module.memory>>20)
	}
	return err
}

// brief returns what happened and the innermost functions, of a trap's long description.
func brief(err error) string {
	const frames = 4
	all := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for n := range all {
		all[n] = strings.TrimSpace(all[n])
	}
	return strings.Join(all[:min(len(all), frames+2)], " ")
}

func (i *instance) nanotime() int64 {
	if i.grants.Clock {
		return monotonic()
	}
	return i.clock.nanotime()
}

func (i *instance) walltime() (int64, int32) {
	if i.grants.Clock {
		return today()
	}
	return i.clock.walltime()
}

// lines passes on whole lines, cut where they are too long.
type lines struct {
	to   io.Writer
	line []byte
}

const longestLine = 8 << 10

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			end = len(p)
		}
		if room := longestLine - len(l.line); room > 0 {
			l.line = append(l.line, p[:min(end, room)]...)
		}
		if p[end-1] == '\n' {
			l.flush()
		}
		p = p[end:]
	}
	return n, nil
}

func (l *lines) flush() {
	if len(l.line) == 0 {
		return
	}
	if l.line[len(l.line)-1] != '\n' {
		l.line = append(l.line, '\n')
	}
	_, _ = l.to.Write(l.line)
	l.line = l.line[:0]
}
