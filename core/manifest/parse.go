package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Parse reads a plugins.yaml. name is its path: it stands in errors, and what is relative in the
// file is relative to its directory. The error lists every mistake, one a line, as
// `file:line:column: what, and what to do`. Nothing outside of data is read.
func Parse(name string, data []byte) (*Set, error) {
	set := &Set{file: name}
	var found strict.Errors
	if errs, ok := strict.Decode(name, data, set).(strict.Errors); ok {
		found = errs
	}
	set.Plugins = slices.DeleteFunc(set.Plugins, func(e *Entry) bool { return e == nil })
	c := &checker{found: found, names: map[string]strict.Place{}, listens: map[Listen]strict.Place{}}
	for _, e := range set.Plugins {
		c.entry(e)
		e.Limits.fill(e.Wasm != nil || e.Plugin != "")
		e.fillPull()
		e.ForEach.fill()
	}
	if len(c.found) > 0 {
		slices.SortStableFunc(c.found, func(a, b strict.Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, c.found
	}
	return set, nil
}

// checker finds what concerns more than one key.
type checker struct {
	found strict.Errors
	names map[string]strict.Place
	// listens are where the core is to listen, by address.
	listens map[Listen]strict.Place
}

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	builtinPattern = regexp.MustCompile(`^([a-z]+)/[a-z0-9][a-z0-9-]*$`)
	envPattern     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (c *checker) fail(at strict.Place, format string, args ...any) {
	if at.Line > 0 {
		c.found = append(c.found, strict.Error{Place: at, Text: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) entry(e *Entry) {
	c.name(e)
	c.carrier(e)
	c.serving(e)
	c.rows(e)
	c.trust(e)
	c.forEach(e)
	c.listen(e)
	if e.OnFailure == "skip" && !e.Kind.Proto().Patches() {
		c.fail(e.Keys["onFailure"], "`onFailure: skip` is for patches; a %s plugin has last-good or block", e.Kind)
	}
	if e.Limits.MessageBytes > session.MaxMessage {
		c.fail(e.Limits.Keys["messageBytes"], "`messageBytes` is at most 1Mi")
	}
}

func (c *checker) name(e *Entry) {
	if e.Name == "" {
		return
	}
	if !namePattern.MatchString(e.Name) {
		c.fail(e.Keys["name"], "the name `%s` is not made of a-z, 0-9, `-`, `_` and `.`, at most 63 of them", e.Name)
	}
	if first, twice := c.names[e.Name]; twice {
		c.fail(e.Keys["name"], "the name `%s` is taken in line %d; names are unique", e.Name, first.Line)
		return
	}
	c.names[e.Name] = e.Keys["name"]
}

func (c *checker) carrier(e *Entry) {
	if _, given := e.Keys["plugin"]; given {
		c.artifact(e)
		return
	}
	if e.Pull != nil {
		c.fail(e.Keys["pull"], "`pull` says how `plugin` is fetched, and there is none")
	}
	var given []string
	for word, is := range map[string]bool{"builtin": e.Builtin != "", "process": e.Process != nil, "wasm": e.Wasm != nil} {
		if is {
			given = append(given, "`"+word+"`")
		}
	}
	slices.Sort(given)
	switch len(given) {
	case 0:
		c.fail(e.At, "nothing says what to run; give one of `builtin`, `plugin`, `process`, `wasm`")
	case 1:
		c.run(e)
	default:
		c.fail(e.At, "%s are given; exactly one of them says what to run", strings.Join(given, " and "))
	}
}

func (c *checker) run(e *Entry) {
	switch {
	case e.Builtin != "":
		m := builtinPattern.FindStringSubmatch(e.Builtin)
		if m == nil {
			c.fail(e.Keys["builtin"], "`builtin` wants KIND/NAME, such as config/file, not `%s`", e.Builtin)
		} else if e.Kind != "" && m[1] != string(e.Kind) {
			c.fail(e.Keys["builtin"], "the kind is %s, but `%s` is one of kind %s", e.Kind, e.Builtin, m[1])
		}
	case e.Process != nil:
		if _, given := e.Process.Keys["command"]; !given {
			c.fail(e.Keys["process"], "`command` is missing")
		} else if e.Process.Command == "" {
			c.fail(e.Process.Keys["command"], "`command` is empty")
		}
		c.process(e.Process)
	case e.Wasm != nil:
		if _, given := e.Wasm.Keys["path"]; !given {
			c.fail(e.Keys["wasm"], "`path` is missing")
		} else if e.Wasm.Path == "" {
			c.fail(e.Wasm.Keys["path"], "`path` is empty")
		}
		c.module(e.Wasm)
	}
}

func (c *checker) module(w *Wasm) {
	if w.Memory > 4<<30 {
		c.fail(w.Keys["memory"], "`memory` of a module is at most 4Gi")
	}
}

// artifact checks an entry whose program is fetched: what stands beside `plugin` says how it runs,
// and not what.
func (c *checker) artifact(e *Entry) {
	const instead = "`plugin` says what to run; take this out"
	if e.Builtin != "" {
		c.fail(e.Keys["builtin"], instead)
	}
	if e.SHA256 != "" {
		c.fail(e.Keys["sha256"], "the digest in `plugin` says which bytes are run; take this out")
	}
	if e.Process != nil && e.Wasm != nil {
		c.fail(e.At, "`process` and `wasm` are given; the artifact is one of them")
	}
	if p := e.Process; p != nil {
		if p.Command != "" {
			c.fail(p.Keys["command"], instead)
		}
		c.process(p)
	}
	if w := e.Wasm; w != nil {
		if w.Path != "" {
			c.fail(w.Keys["path"], instead)
		}
		if w.SHA256 != "" {
			c.fail(w.Keys["sha256"], "the digest in `plugin` says which bytes are run; take this out")
		}
		c.module(w)
	}
	if p := e.Pull; p != nil && p.Bytes > mostPulled {
		c.fail(p.Keys["bytes"], "`bytes` of an artifact are at most 4Gi")
	}
	if p := e.Pull; p != nil && p.PlainHTTP && !e.Insecure {
		c.fail(p.Keys["plainHTTP"],
			"`plainHTTP` lets anybody on the way read the credentials, and change what a tag means; say `insecure: true` beside it if that is meant")
	}
}

// mostPulled is how large an artifact may be at most.
const mostPulled = 4 << 30

func (c *checker) process(p *Process) {
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !envPattern.MatchString(name) {
			c.fail(p.Keys["env"], "`%s` is no name for an environment variable", name)
		}
	}
}

// serving checks what only generators and patches have.
func (c *checker) serving(e *Entry) {
	if e.Start == OnDemand && e.Kind != "" && !e.Kind.Proto().Sleeps() {
		c.fail(e.Keys["start"], "`start: onDemand` is for generators, authenticators, and config sources, registries and controllers that read rows; "+
			"a %s plugin is always wanted", e.Kind)
	}
	if e.Headers != nil && e.Kind != "" && !e.Kind.Proto().Authenticates() {
		c.fail(e.Keys["headers"], "`headers` is for authenticators; a %s plugin is asked about no callers", e.Kind)
	}
	if e.Kind == "" || e.Kind.Proto().Serves() {
		return
	}
	if e.Types != nil {
		c.fail(e.Keys["types"], "`types` is for generators and patches; a %s plugin serves none", e.Kind)
	}
	if e.Select != nil {
		c.fail(e.Keys["select"], "`select` is for generators and patches; a %s plugin serves no proxies", e.Kind)
	}
}

// rows checks what only those have that publish rows.
func (c *checker) rows(e *Entry) {
	if e.Kind == "" || e.Kind.Proto().Rows() {
		return
	}
	if e.Merge != nil {
		c.fail(e.Keys["merge"], "`merge` is for registries, config sources and controllers; a %s plugin has no rows to merge", e.Kind)
	}
	if e.DropAfter() > 0 {
		c.fail(e.Keys["onLoss"], "`drop-after` is for registries, config sources and controllers; a %s plugin has no rows whose source could be away", e.Kind)
	}
}

func (c *checker) trust(e *Entry) {
	if e.SHA256 != "" && e.Builtin != "" {
		c.fail(e.Keys["sha256"], "`sha256` is for `process`; a built-in is part of the binary that runs it")
	}
	if e.Wasm != nil && e.SHA256 != "" {
		c.fail(e.Keys["sha256"], "the module's hash is `wasm.sha256`")
	}
	if e.Wasm != nil && e.User != "" {
		c.fail(e.Keys["user"], "`user` is for `process` and `builtin`; a module can do nothing but what `allow` grants")
	}
	if s := e.Sandbox; s != nil && (s.Read != nil || s.Write != nil) {
		if e.Wasm != nil {
			c.fail(e.Keys["sandbox"], "`sandbox.read` and `sandbox.write` are for `process` and `builtin`; a module has no files but those of `allow`")
		}
		if s.Unconfined {
			c.fail(s.Keys["unconfined"], "`unconfined` takes nothing away, and `read` and `write` do; keep one")
		}
	}
	if e.Wasm != nil && e.Wasm.Allow != nil && e.Allow != nil {
		c.fail(e.Keys["allow"], "`allow` and `wasm.allow` are given; keep one")
	}
}

// fill sets defaults. Modules get a longer limit for the start: they are compiled and instantiated
// before they are Ready.
func (l *Limits) fill(module bool) {
	configure := 30 * time.Second
	if module {
		configure = 2 * time.Minute
	}
	l.Compile = cmp.Or(l.Compile, 10*time.Minute)
	l.Start = cmp.Or(l.Start, 30*time.Second)
	l.Configure = cmp.Or(l.Configure, configure)
	l.Sync = cmp.Or(l.Sync, time.Minute)
	l.Revision = cmp.Or(l.Revision, 30*time.Second)
	l.Call = cmp.Or(l.Call, 5*time.Second)
	l.Progress = cmp.Or(l.Progress, 30*time.Second)
	l.Stop = cmp.Or(l.Stop, 5*time.Second)
	l.OpenFiles = cmp.Or(l.OpenFiles, 4096)
	l.Rows = cmp.Or(l.Rows, 1_000_000)
	l.Bytes = cmp.Or(l.Bytes, 512<<20)
	l.Bodies = cmp.Or(l.Bodies, 1<<30)
	l.RowBytes = cmp.Or(l.RowBytes, 1<<20)
	l.MessageBytes = cmp.Or(l.MessageBytes, session.MaxMessage)
}

func (e *Entry) fillPull() {
	if e.Plugin == "" {
		return
	}
	if e.Pull == nil {
		e.Pull = &Pull{}
	}
	e.Pull.Timeout = cmp.Or(e.Pull.Timeout, 5*time.Minute)
	e.Pull.Bytes = cmp.Or(e.Pull.Bytes, 256<<20)
}

// Builtins returns the entries that run a built-in plugin, such as config/file.
func (s *Set) Builtins(name string) []*Entry {
	var found []*Entry
	for _, e := range s.Plugins {
		if e.Builtin == name {
			found = append(found, e)
		}
	}
	return found
}

// SetConfig sets fields of the entry's config, over what the file says: for flags that stand for a
// field.
func (e *Entry) SetConfig(fields map[string]any) error {
	all := map[string]any{}
	if len(e.Config) > 0 {
		if err := json.Unmarshal(e.Config, &all); err != nil {
			return fmt.Errorf("%s: the config of %s is no mapping", e.At, e.Name)
		}
	}
	maps.Copy(all, fields)
	for field := range fields {
		delete(e.Keys, "config."+field)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("%s: the config of %s: %w", e.At, e.Name, err)
	}
	e.Config = text
	return nil
}
