package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What listens. Each has the port of this number where that is free.
const (
	xds, pages, metrics   = 15010, 8080, 15014
	gateway, gatewayAdmin = 7080, 15100
	sidecar, sidecarAdmin = 9080, 15200
	v1a, v1b, v2a, v2b    = 9101, 9102, 9201, 9202
)

// wanted are the ports by what the demo calls them.
var wanted = []struct {
	port int
	name string
}{
	{xds, "xDS"}, {pages, "pages"}, {metrics, "metrics"}, {gateway, "gateway"}, {gatewayAdmin, "gateway's own pages"},
	{sidecar, "client's sidecar"}, {sidecarAdmin, "sidecar's own pages"},
	{v1a, "backend v1"}, {v1b, "backend v1"}, {v2a, "backend v2"}, {v2b, "backend v2"},
}

// ports are those that are used, by those that were wanted.
type ports map[int]int

// further is how many ports after one that is taken are tried.
const further = 50

// find takes the next free port where something listens at one already, and says so.
func (p *ports) find() error {
	*p = ports{}
	used := map[int]bool{}
	for _, w := range wanted {
		used[w.port] = true
	}
	for _, w := range wanted {
		(*p)[w.port] = w.port
		why := free(w.port)
		if why == nil {
			continue
		}
		next := w.port + 1
		for ; next <= w.port+further && (used[next] || free(next) != nil); next++ {
		}
		if next > w.port+further {
			return fmt.Errorf("the demo needs a port for %s, and those from %d to %d are taken: %w", w.name, w.port, next-1, why)
		}
		(*p)[w.port], used[next] = next, true
		fmt.Printf("%s is taken: %s is at %s\n", loopback(w.port), w.name, loopback(next))
	}
	return nil
}

// free fails where something listens at a port.
func free(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// at is the address of what wanted a port.
func (p ports) at(wanted int) string { return loopback(p[wanted]) }

// list are the ports of what wanted these, separated by commas.
func (p ports) list(wanted ...int) string {
	var all []string
	for _, w := range wanted {
		all = append(all, strconv.Itoa(p[w]))
	}
	return strings.Join(all, ",")
}

// copy copies a folder of configuration with the ports that are used.
func (p ports) copy(from, to string) error {
	var change []string
	for was, is := range p {
		if was != is {
			change = append(change, fmt.Sprintf(": %d\n", was), fmt.Sprintf(": %d\n", is))
		}
	}
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no configuration is in %s", from))
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = []byte(strings.NewReplacer(change...).Replace(string(text)))
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
