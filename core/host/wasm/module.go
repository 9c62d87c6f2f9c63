package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// pageBytes is the size of a page of a module's memory.
const pageBytes = 64 << 10

// module is a compiled module, of which any number of instances can be made.
type module struct {
	// file is its path, for people.
	file     string
	memory   uint64
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	cache    wazero.CompilationCache
}

// load compiles a module, or takes it from the cache directory, where it is found by its content
// and wazero's version.
func load(ctx context.Context, cfg Config) (*module, error) {
	m := &module{file: cfg.File, memory: cfg.Memory}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(cfg.Memory / pageBytes)).WithDebugInfoEnabled(false)
	if cfg.Cache != "" {
		cache, err := openCache(cfg.Cache)
		if err != nil {
			return nil, fmt.Errorf("the cache of compiled modules: %w", err)
		}
		m.cache = cache
		config = config.WithCompilationCache(cache)
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := m.compile(ctx, cfg.Code); err != nil {
		_ = m.close(ctx)
		return nil, fmt.Errorf("module %s: %w", cfg.File, err)
	}
	return m, nil
}

func (m *module) compile(ctx context.Context, code []byte) error {
	wasi := m.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	exportWaiting(wasi)
	if _, err := wasi.Instantiate(ctx); err != nil {
		return err
	}
	compiled, err := m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), code)
	if err != nil {
		return fmt.Errorf("%w; is it a WASM module, and is wasm.memory large enough for it?", err)
	}
	m.compiled = compiled
	// Compiling takes many times what a compiled module needs.
	debug.FreeOSMemory()
	if _, ok := compiled.ExportedFunctions()["_start"]; !ok {
		return errors.New("it exports no _start, so it is no WASI command; build it as a program (Go: GOOS=wasip1 GOARCH=wasm go build), not as a library")
	}
	for _, f := range compiled.ImportedFunctions() {
		if from, name, _ := f.Import(); from != wasi_snapshot_preview1.ModuleName {
			return fmt.Errorf("it imports %s.%s, which a runner has not: modules get %s and nothing else", from, name, wasi_snapshot_preview1.ModuleName)
		}
	}
	return nil
}

func (m *module) close(ctx context.Context) error {
	err := m.runtime.Close(ctx)
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	return err
}
