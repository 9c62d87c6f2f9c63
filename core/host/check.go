package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// shown are tables that can't be of secrets: of these the contract says what is in them, and pages
// and messages have it.
var shown = []string{
	state.Services, state.Endpoints, state.Workloads, state.Namespaces, state.Mesh, state.Networks,
	state.ClusterServices, state.NetworkGateways, state.Faults, "proxies",
}

var tablePattern = regexp.MustCompile(`^[A-Za-z0-9.-]+(/[A-Za-z0-9.-]+)?$`)

// check compares what a plugin says of itself with its entry and with the contract.
func check(e *manifest.Entry, r *pb.Ready) error {
	if r.Version != session.Version {
		return fmt.Errorf("it chose version %d of the contract, this core speaks %d; use a build of the plugin that speaks it too",
			r.Version, session.Version)
	}
	if r.Kind != e.Kind.Proto() {
		return fmt.Errorf("it is a plugin of kind %s, the entry says %s; correct the one that is wrong", kindWord(r.Kind), e.Kind)
	}
	if r.Plugin == "" {
		return errors.New("its Ready has no plugin name")
	}
	if len(r.ConfigSchema) > 0 && !json.Valid(r.ConfigSchema) {
		return errors.New("the schema of its config is no JSON")
	}
	if err := checkTables(r); err != nil {
		return err
	}
	if r.Headers != nil {
		if !r.Kind.Authenticates() {
			return fmt.Errorf("it wants headers of callers, which a plugin of kind %s isn't shown", kindWord(r.Kind))
		}
		for _, name := range r.Headers.Names {
			if !slices.Contains(caller.CommonHeaders(), name) {
				return fmt.Errorf("it wants the header %q of callers; it can have those of %q, and others that its entry names in `headers`",
					name, caller.CommonHeaders())
			}
		}
	}
	return checkTypes(e, r)
}

func checkTables(r *pb.Ready) error {
	reads := make([]string, len(r.Reads))
	for i, read := range r.Reads {
		reads[i] = read.Table
	}
	if err := tables("reads", reads); err != nil {
		return err
	}
	if err := tables("publishes", r.Publishes); err != nil {
		return err
	}
	if err := tables("writes", r.Writes); err != nil {
		return err
	}
	for _, name := range r.Writes {
		if !r.Kind.Stores() || r.Derives {
			return fmt.Errorf("it takes writes of the table %s: only a plugin of kind config can that derives nothing", name)
		}
	}
	if err := tables("has the secrets of", r.Secrets); err != nil {
		return err
	}
	for _, name := range r.Secrets {
		switch {
		case slices.Contains(shown, name):
			return fmt.Errorf(
				"it says that the rows of the table %s are secrets, but pages show what the contract says is in them: keep secrets in a table of their own",
				name,
			)
		case !slices.Contains(slices.Concat(reads, r.Publishes, r.Writes), name):
			return fmt.Errorf("it says that the rows of the table %s are secrets, which it neither reads nor publishes nor writes", name)
		}
	}
	source := r.Kind.Source()
	switch {
	case source && len(r.Publishes) == 0:
		return fmt.Errorf("it is a plugin of kind %s and publishes no table", kindWord(r.Kind))
	case r.Derives && (len(r.Reads) == 0 || len(r.Publishes) == 0):
		return errors.New("it derives rows, so it must say which tables it reads and which it publishes")
	}
	return nil
}

func tables(what string, names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case !tablePattern.MatchString(name):
			return fmt.Errorf("it %s a table named %q; a name is like services or gateway.networking.k8s.io/Gateway", what, name)
		case seen[name]:
			return fmt.Errorf("it %s the table %s twice", what, name)
		case what == "publishes" && name == "proxies":
			return errors.New("it publishes the table proxies, which is the core's own")
		}
		seen[name] = true
	}
	return nil
}

func checkTypes(e *manifest.Entry, r *pb.Ready) error {
	serves := r.Kind.Serves()
	if serves && len(r.Types) == 0 {
		return fmt.Errorf("it is a plugin of kind %s and declares no resource types", e.Kind)
	}
	if !serves && len(r.Types) > 0 {
		return fmt.Errorf("it declares resource types, which a plugin of kind %s has not", e.Kind)
	}
	offered := map[string]bool{}
	for _, t := range r.Types {
		if t.Url == "" || strings.ContainsAny(t.Url, " \t\n") || offered[t.Url] {
			return fmt.Errorf("it declares the type %q, which is empty, has spaces or stands there twice", t.Url)
		}
		offered[t.Url] = true
	}
	for _, t := range e.Types {
		if !offered[string(t)] {
			return fmt.Errorf("the entry's types name %s, which it does not offer", t)
		}
	}
	return nil
}

// kindWord is the word for a kind, in sentences.
func kindWord(k pb.Kind) string {
	return cmp.Or(string(manifest.KindOf(k)), "nothing that this core knows")
}
