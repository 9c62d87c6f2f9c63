// Package spec says what a runner is to run, as the host writes it on the runner's command line. It
// knows no WASM runtime.
package spec

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
)

// Command is the (hidden) command of the coxswain binary that is a runner.
const Command = "wasm-runner"

const (
	// DefaultMemory is what one instance may have where plugins.yaml doesn't say, in bytes.
	DefaultMemory = 256 << 20
	// DefaultInstances is how many instances of a stateless plugin may run at once where
	// plugins.yaml doesn't say.
	DefaultInstances = 2
)

// Spec is what to run.
type Spec struct {
	// Module is where the runner reads the module: the very bytes that were hashed, if there is a
	// hash.
	Module string
	// File is the module's path as plugins.yaml has it, for people.
	File string
	// Cache is the directory of compiled modules; none if it is empty.
	Cache string
	// Memory that one instance may have, in bytes.
	Memory uint64
	// Instances of a stateless plugin that may run at once.
	Instances uint
}

// Args returns the runner's arguments, Command first.
func (s Spec) Args() []string {
	return []string{
		Command, "-module", s.Module, "-file", s.File, "-cache", s.Cache,
		"-memory", strconv.FormatUint(s.Memory, 10), "-instances", strconv.FormatUint(uint64(s.Instances), 10),
	}
}

// Parse reads the arguments that follow Command.
func Parse(args []string) (Spec, error) {
	var s Spec
	f := flag.NewFlagSet(Command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.Module, "module", "", "")
	f.StringVar(&s.File, "file", "", "")
	f.StringVar(&s.Cache, "cache", "", "")
	f.Uint64Var(&s.Memory, "memory", DefaultMemory, "")
	f.UintVar(&s.Instances, "instances", DefaultInstances, "")
	if err := f.Parse(args); err != nil {
		return s, fmt.Errorf("%s: %w", Command, err)
	}
	if s.Module == "" {
		return s, errors.New(Command + ": no module was named; the core starts runners itself, for entries with `wasm`")
	}
	if s.File == "" {
		s.File = s.Module
	}
	return s, nil
}

// Grants is what a module has besides nothing, as Hello carries it: plugins.yaml's `allow`.
type Grants struct {
	// HTTP has hosts (api.example.org, 127.0.0.1:8500, *.example.org) and URLs
	// (https://api.example.org/v1/*).
	HTTP []string `json:"http,omitempty"`
	// Files has absolute paths of files and directories; `:ro` at the end is allowed.
	Files []string `json:"files,omitempty"`
	// Env names variables of the runner's environment.
	Env []string `json:"env,omitempty"`
	// Clock grants the real time.
	Clock bool `json:"clock,omitempty"`
}
