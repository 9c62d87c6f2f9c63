package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// trial is what `coxswain plugins test` was told.
type trial struct {
	kind, config, source, node, junit, only string
	object, badObject                       string
	bad, env, tokens, http, files           []string
	many                                    int
	tls                                     bool
	patience                                float64
}

func pluginTestCommand(p *program) *cobra.Command {
	var o trial
	c := &cobra.Command{
		Use:   "test PATH [-- ARGUMENT…]",
		Short: "Run the conformance suite against a plugin: an executable or a .wasm file, made in any language",
		Long: `Run the conformance suite of a kind against a plugin: an executable or a .wasm file, made in any language.

Each case starts the plugin anew, plays the core, and says what went wrong, with the messages that led there. The exit status is 1 where a case
failed. Cases that change what a registry reads need --source: a shell command that is run with a number as its argument ($1), after which the
source must have so many endpoints (or rows, where it publishes none: in all, or in the table that has most). Cases that write need --object: they make objects like it, under names of their own,
and delete them.`,
		Example: `  coxswain plugins test ./registry --kind registry --config '{"file": "services.csv"}'
  coxswain plugins test patch.wasm --kind patch --junit report.xml
  coxswain plugins test python3 --kind registry --config '{"file": "/tmp/s.csv"}' --source './fill.sh $1' -- registry.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("coxswain plugins test wants PATH, an executable or a .wasm file")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			// A case can't be interrupted. The plugins that it started end with this process.
			defer context.AfterFunc(c.Context(), func() { os.Exit(1) })()
			return testPlugin(p, o, args[0], args[1:])
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.kind, "kind", "", "registry, config, generator, patch, authenticator or controller; empty: what the plugin says")
	f.StringVar(&o.config, "config", "", "config of the plugin, as JSON")
	f.StringArrayVar(&o.bad, "badConfig", nil, "config that the plugin must refuse (repeat it for more)")
	f.StringVar(&o.source, "source", "", "shell command that makes the source have $1 endpoints, or rows where the plugin publishes none")
	f.StringVar(&o.object, "object", "", "file with an object, as JSON, that a plugin that takes writes takes")
	f.StringVar(&o.badObject, "badObject", "", "file with one that it must refuse")
	f.StringVar(&o.node, "node", "", "file with the node that a generator is asked about, as JSON; empty: a sidecar")
	f.StringArrayVar(&o.tokens, "token", nil, "bearer token that an authenticator must know (repeat it for more)")
	f.StringArrayVar(&o.env, "env", nil, "NAME=VALUE of the plugin's environment, which is empty otherwise; NAME alone: as here")
	f.StringArrayVar(&o.http, "http", nil, "host or URL that a module may call, as allow.http has it (repeat it for more)")
	f.StringArrayVar(&o.files, "files", nil,
		"file or directory that a module may read and, without :ro at the end, write, as allow.files has it (repeat it for more)")
	f.BoolVar(&o.tls, "tls", false, "speak go-plugin's mutual TLS, as an entry with tls: auto does")
	f.IntVar(&o.many, "many", 0, "how many endpoints are many; 0: what COXSWAIN_MANY says, else 100,000")
	f.Float64Var(&o.patience, "patience", 1, "multiplies the times in which a plugin must answer: more than 1 where the machine is slow or busy")
	f.StringVar(&o.only, "run", "", "only the cases whose names contain this")
	f.StringVar(&o.junit, "junit", "", "file to write a JUnit report to")
	return c
}

func testPlugin(p *program, o trial, path string, args []string) error {
	suite, err := o.suite()
	if err != nil {
		return usageError{err}
	}
	target, err := targetOf(p, o, path, args)
	if err != nil {
		return err
	}
	target.Patience, target.HTTP = o.patience, o.http
	for _, f := range o.files {
		path, readOnly := strings.CutSuffix(f, ":ro")
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		if readOnly {
			path += ":ro"
		}
		target.Files = append(target.Files, path)
	}
	suite.Progress = func(name, waits string, took time.Duration) {
		fmt.Fprintf(p.err, "...   %s: %s, for %s\n", name, waits, took.Round(time.Second))
	}
	var all []plugintest.Result
	suite.Run(target, func(r plugintest.Result) {
		all = append(all, r)
		show.Result(p.out, r)
	})
	failed := show.Summary(p.out, all)
	if o.junit != "" {
		if err := writeJUnit(o.junit, path, all); err != nil {
			return err
		}
	}
	if failed {
		return errFound
	}
	return nil
}

// targetOf says how to run the plugin: this binary is the runner of modules.
func targetOf(p *program, o trial, path string, args []string) (t plugintest.Target, err error) {
	if strings.HasSuffix(path, ".wasm") {
		if _, err := os.Stat(path); err != nil {
			return t, err
		}
		exe, err := os.Executable()
		return plugintest.Module(exe, path, filepath.Join(p.runtimeDir(), "wasm")), err
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return t, fmt.Errorf("%w; a plugin is an executable or a .wasm file", err)
	}
	if found, err = filepath.Abs(found); err != nil {
		return t, err
	}
	c := process.Command{Path: found, Args: args, TLS: o.tls}
	for _, pair := range o.env {
		if !strings.Contains(pair, "=") {
			pair += "=" + p.variable(pair)
		}
		c.Env = append(c.Env, pair)
	}
	return plugintest.Process(c), nil
}

func (o trial) suite() (s plugintest.Suite, err error) {
	s = plugintest.Suite{Kind: o.kind, Many: o.many, Only: o.only}
	if o.config != "" {
		s.Config = o.config
	}
	for _, bad := range o.bad {
		s.BadConfigs = append(s.BadConfigs, bad)
	}
	for _, token := range o.tokens {
		s.Credentials = append(s.Credentials, sdk.Credentials{Headers: map[string]string{"authorization": "Bearer " + token}})
	}
	if o.source != "" {
		s.Source = shell(o.source)
	}
	if o.node != "" {
		if s.Node, err = readNode(o.node); err != nil {
			return s, err
		}
	}
	if s.Object, err = given(o.object); err != nil {
		return s, err
	}
	s.BadObject, err = given(o.badObject)
	return s, err
}

// shell returns a function that runs a command with a number as its argument.
func shell(command string) func(int) error {
	return func(rows int) error {
		if out, err := exec.Command("/bin/sh", "-c", command, "source", strconv.Itoa(rows)).CombinedOutput(); err != nil {
			return fmt.Errorf("--source: %w: %s", err, out)
		}
		return nil
	}
}

// given is what a file has; nothing without one.
func given(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

func readNode(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var node corev3.Node
	if err := protojson.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&node)
}
