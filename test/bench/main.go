package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// run runs the bench, or what it runs of itself: the touches.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "post":
			return post(ctx, args[1:])
		case "remove":
			return remove(args[1:])
		case "floor":
			return serveFloor(ctx, args[1:])
		}
	}
	var c config
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&c.coxswain, "coxswain", "bin/coxswain", "the control plane")
	fs.StringVar(&c.set, "plugins", "plugins.yaml", "the plugin set that it runs")
	fs.StringVar(&c.tools, "tools", ".cache/bin", "directory with xdsload, meshgen, floor and gocontrolplane")
	fs.StringVar(&c.meshConfig, "mesh", "", "MeshConfig of all runs")
	fs.StringVar(&c.peers, "dumps", "", "directory with what istiod sent, W1 and W2: for the sizes")
	fs.StringVar(&c.work, "work", ".cache/bench", "directory to work in; it keeps the logs and the result")
	fs.StringVar(&c.only, "only", "",
		"measure only the load with this name, such as W2-500-sotw; with -hard and -growth the scenarios or axes whose names have it")
	fs.BoolVar(&c.quick, "quick", false, "one round of one small and one large load")
	fs.BoolVar(&c.hard, "hard", false, "only sidecars that share little, TLS, slow readers and many changes")
	fs.BoolVar(&c.growth, "growth", false, "only how cost grows with proxies, services, views and changes")
	fs.BoolVar(&c.kept, "kept", false, "only the control plane, with what it keeps of pushes and without, in turns")
	fs.BoolVar(&c.watched, "watched", false, "only the control plane, with 20 clients of the page's events and without, in turns")
	fs.BoolVar(&c.traced, "traced", false, "only the control plane, with a trace of each push sent to a collector and without, in turns")
	fs.StringVar(&c.beside, "beside", "", "only the control plane, and this program, another build of it, in turns")
	fs.BoolVar(&c.profile, "profile", false, "only the control plane, with profiles of each process in WORK/profile")
	fs.IntVar(&c.repeats, "repeats", 4, "changes of a kind in a round; with 7 three rounds make 21")
	fs.IntVar(&c.sidecars, "sidecars", 500, "of what is compared in turns (-kept, -watched, -traced, -beside): how many sidecars")
	fs.IntVar(&c.rounds, "rounds", 3, "rounds of each server and load")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.hard:
		return hard(ctx, c)
	case c.growth:
		return growth(ctx, c)
	case c.kept, c.watched, c.traced, c.beside != "":
		return pair(ctx, c)
	}
	started := time.Now()
	if err := measure(ctx, c); err != nil {
		return err
	}
	fmt.Printf("\n%.0f s; all figures: %s\n", time.Since(started).Seconds(), c.path("result.json"))
	return nil
}

// config is what is measured, with which programs.
type config struct {
	coxswain, set, tools, meshConfig, peers, work, only, beside string
	quick, profile, hard, growth, kept, watched, traced         bool
	rounds, repeats, sidecars                                   int
	// collector takes the traces; nil: there are none.
	collector *sink
}

func (c *config) check() error {
	if c.beside != "" {
		absolute, err := filepath.Abs(c.beside)
		if err != nil {
			return err
		}
		c.beside = absolute
	}
	for _, p := range []*string{&c.coxswain, &c.set, &c.tools, &c.work} {
		absolute, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = absolute
	}
	if c.rounds < 1 || c.repeats < 1 || c.sidecars < 1 {
		return errors.New("-rounds, -repeats and -sidecars must be at least 1")
	}
	if c.quick {
		c.rounds = 1
	}
	return os.MkdirAll(c.work, 0o755)
}

func (c *config) tool(name string) string { return filepath.Join(c.tools, name) }

func (c *config) path(elem ...string) string {
	return filepath.Join(append([]string{c.work}, elem...)...)
}

func save(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
