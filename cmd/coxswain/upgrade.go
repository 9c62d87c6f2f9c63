package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/migrate"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/seen"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// upgradeCommand has what is about a change of the program's version.
func upgradeCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Look at what a change of this program's version means",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(upgradeCheckCommand(p))
	return c
}

// upgrading is what coxswain upgrade check is told.
type upgrading struct {
	clusterFlags
	files                 []string
	live                  bool
	namespace, deployment string
	pid                   int
	env, old, since, form string
}

func upgradeCheckCommand(p *program) *cobra.Command {
	var u upgrading
	c := &cobra.Command{
		Use:   "check --pid PID | check -f FILE… | check --live | check [-- discovery FLAG…]",
		Short: "Say what this version would refuse, pass over or do otherwise than the one that runs",
		Long: `Check reads how another version runs: its command line, environment, file of settings, plugins.yaml and state
directory, the mesh's settings and the injector's templates. It says what this version would refuse, what it would pass
over, which defaults are others here, and which versions came between. It starts no plugin and changes nothing:
coxswain plan --against compares what proxies get.

With --pid it reads a process of this machine; with --filename or --live a Deployment, with the ConfigMaps that it
mounts or takes its environment from. Secrets are not read: what they have is not checked, and named. Otherwise give
the command line behind two dashes, and the environment as this command's own or as a file.

The exit code is 1 where something would be refused.`,
		Example: `  ./coxswain-new upgrade check --pid $(pidof coxswain)
  ./coxswain-new upgrade check --old /usr/bin/coxswain -- discovery --settings /etc/coxswain/settings.yaml
  ./coxswain-new upgrade check --live --namespace istio-system
  helm get manifest istiod -n istio-system | ./coxswain-new upgrade check -f -
  ./coxswain-new upgrade check --env /etc/default/coxswain --since v0.1.0 -o json -- --plugins plugins.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() < 0 && len(args) > 0 {
				return usageError{fmt.Errorf("%s: write -- before the command line that is checked", c.CommandPath())}
			}
			if err := checkFormat(u.form); err != nil {
				return err
			}
			return checkUpgrade(c, p, u, args)
		},
	}
	f := c.Flags()
	f.IntVar(&u.pid, "pid", 0, "process whose command line, environment and program are read")
	u.clusterFlags.add(c)
	f.StringSliceVarP(&u.files, "filename", "f", nil, "file with Kubernetes objects, or a directory of such; -: standard input")
	f.BoolVar(&u.live, "live", false, "read a cluster")
	f.StringVar(&u.namespace, "namespace", "istio-system", "with --live, the Deployment's namespace")
	f.StringVar(&u.deployment, "deployment", "", "name of the Deployment, where there are several")
	f.StringVar(&u.env, "env", "", "file with the environment, NAME=VALUE in each line")
	f.StringVar(&u.old, "old", "", "program of the version that runs, to compare defaults with (--pid: that of the process)")
	f.StringVar(&u.since, "since", "", "version that runs, such as v0.1.0 (--old, --pid: what the program says)")
	formatFlag(c, &u.form)
	return c
}

// What a finding means.
const (
	isRefused   = "refused"     // this version would not start, or would not take it
	isPassed    = "passed over" // it would start, and this would count for nothing
	isOtherwise = "otherwise"   // it would do something else than the one that runs
	isUnread    = "not read"    // it was not read, so that nothing is said of it
	isFine      = "fine"
)

// outcome is one thing that an upgrade check says.
type outcome struct {
	Means string `json:"means"`
	Of    string `json:"of"`
	Text  string `json:"text"`
}

// change is a version that came after the one that runs.
type change struct {
	Version string `json:"version"`
	Text    string `json:"text"`
}

// upgradeReport is what an upgrade check says, in JSON.
type upgradeReport struct {
	Version  string    `json:"version"`
	Since    string    `json:"since,omitempty"`
	Findings []outcome `json:"findings"`
	Changes  []change  `json:"changes,omitempty"`
}

func (r *upgradeReport) add(means, of string, lines ...string) {
	for _, l := range lines {
		r.Findings = append(r.Findings, outcome{means, of, l})
	}
}

// refuse adds each line of an error.
func (r *upgradeReport) refuse(of string, err error) {
	if err != nil {
		r.add(isRefused, of, strings.Split(err.Error(), "\n")...)
	}
}

func checkUpgrade(c *cobra.Command, p *program, u upgrading, args []string) error {
	if len(u.files) > 0 || u.live {
		if len(args) > 0 || u.env != "" || u.pid != 0 || len(u.files) > 0 && u.live {
			return usageError{errors.New("a Deployment has the command line and the environment: " +
				"give one of --filename and --live, and leave --pid, --env and what is behind the two dashes out")}
		}
		return upgradeDeployment(c, p, u)
	}
	environ, err := u.environment(p.environ)
	if err != nil {
		return err
	}
	if u.pid != 0 {
		if len(args) > 0 || u.env != "" {
			return usageError{errors.New("--pid reads the command line and the environment: leave --env and what is behind the two dashes out")}
		}
		if args, err = u.process(); err != nil {
			return err
		}
	}
	r := &upgradeReport{Version: build(), Since: u.since, Findings: []outcome{}}
	s := r.settings(args, environ)
	r.plugins(s, environ, nil)
	r.state(s.History.StateDir)
	return upgradeEnds(c.Context(), p, u, r, args, environ)
}

// upgradeEnds compares with the old program, where there is one, and says all.
func upgradeEnds(ctx context.Context, p *program, u upgrading, r *upgradeReport, args, environ []string) error {
	if u.old != "" {
		if err := r.beside(ctx, u.old, args, environ); err != nil {
			return fmt.Errorf("--old: %w", err)
		}
	}
	r.Changes = changesSince(coxswain.Changes(), r.Since)
	return printUpgrade(p, r, u.form)
}

// environment is that of what runs.
func (u *upgrading) environment(own []string) ([]string, error) {
	name, end := u.env, "\n"
	if u.pid != 0 {
		name, end = fmt.Sprintf("/proc/%d/environ", u.pid), "\x00"
	}
	if name == "" {
		return own, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var environ []string
	for i, l := range strings.Split(string(text), end) {
		l = strings.TrimSuffix(l, "\r")
		if strings.TrimSpace(l) == "" || end == "\n" && strings.HasPrefix(l, "#") {
			continue
		}
		key, value, ok := strings.Cut(l, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want NAME=VALUE", name, i+1) // its text may be secret
		}
		if n := len(value); end == "\n" && n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
		environ = append(environ, key+"="+value)
	}
	return environ, nil
}

// process reads a process's command line, goes into its folder, as its paths may be relative, and
// takes its program for the old one.
func (u *upgrading) process() (args []string, err error) {
	at := fmt.Sprintf("/proc/%d/", u.pid)
	text, err := os.ReadFile(at + "cmdline")
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	from := slices.Index(words, "discovery")
	if from < 0 {
		return nil, fmt.Errorf("process %d is no control plane: it has no argument discovery", u.pid)
	}
	if err := os.Chdir(at + "cwd"); err != nil {
		return nil, err
	}
	u.old = cmp.Or(u.old, at+"exe")
	return words[from:], nil
}

// discoveryFlags are those of the command discovery.
func discoveryFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	settings.Flags(fs, settings.Defaults())
	settings.PilotFlags(fs)
	fs.Bool(trialFlag, false, "")
	fs.Bool(helpAllFlag, false, "")
	return fs
}

// settings reads a command line, an environment, and the file that they name. Where something is
// refused, what could be read of where plugins.yaml and the state are is returned.
func (r *upgradeReport) settings(args, environ []string) settings.Settings {
	fs := discoveryFlags("discovery")
	if len(args) > 0 && args[0] == fs.Name() {
		args = args[1:]
	}
	r.unknown(fs, args)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	r.refuse("command line", fs.Parse(args))
	if fs.NArg() > 0 {
		r.add(isRefused, "command line", fmt.Sprintf("discovery takes no arguments, not %q", fs.Arg(0)))
	}
	r.add(isPassed, "command line", settings.Ignored(fs)...)
	for _, name := range settings.Unknown(environ) {
		r.add(isPassed, "environment", fmt.Sprintf("%s is no setting%s", name, settings.Hint(name, settings.Variables())))
	}
	s, _, err := settings.Load(fs, environ)
	if err != nil {
		r.refuse("settings", err)
		return settings.Salvaged(fs, environ)
	}
	if s.Registries == "Kubernetes" || s.Kubeconfig != "" || ofPod(environ) {
		r.add(isPassed, "environment", s.Elsewhere(environ)...)
	}
	r.add(isFine, "settings", "they are taken")
	return s
}

// unknown tells of flags that there are none of, all of them.
func (r *upgradeReport) unknown(fs *pflag.FlagSet, args []string) {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, arg := range args {
		if arg == "--" {
			return
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if strings.HasPrefix(arg, "--") && fs.Lookup(name) == nil && name != "help" {
			r.add(isRefused, "command line", fmt.Sprintf("unknown flag --%s%s", name, settings.Hint(name, names)))
		}
	}
}

// plugins reads the plugins.yaml as a start does, and what its plugins read then: in has the
// ConfigMaps that were read, and is nil where no cluster is.
func (r *upgradeReport) plugins(s settings.Settings, environ []string, in *migrate.Input) {
	name, text, err := setText(s.Inputs, ofPod(environ))
	if err != nil {
		r.refuse("plugins.yaml", err)
		return
	}
	set, err := set(s.Inputs, name, text)
	mistakes := manifest.Mistakes(err)
	switch {
	case mistakes == nil && err != nil:
		r.refuse("plugins.yaml", err)
		return
	case err == nil:
		builtins := known()
		for name, b := range builtins {
			b.Check = elsewhere(b.Check)
			builtins[name] = b
		}
		mistakes = host.Validate(set, host.Validation{Builtins: builtins, Environ: environ, Hint: settings.Hint})
	}
	for _, m := range mistakes {
		r.add(isRefused, "plugins.yaml", fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text))
	}
	if len(mistakes) == 0 {
		r.add(isFine, "plugins.yaml", fmt.Sprintf("%s has %d plugins, and is taken", name, len(set.Plugins)))
	}
	if err == nil {
		r.read(set, in)
	}
}

// state reads what a directory of state has.
func (r *upgradeReport) state(dir string) {
	if dir == "" {
		return
	}
	for _, look := range []struct {
		of   func(string) (string, error)
		lost string
	}{
		{history.Look, "this version sets it aside and begins anew: earlier revisions and pins are gone"},
		{seen.Look, "this version sets it aside and begins anew: of objects that compete, of different namespaces, all are refused"},
	} {
		switch found, err := look.of(dir); {
		case errors.Is(err, os.ErrPermission):
			r.add(isRefused, "state", fmt.Sprintf("%v; run this as the user that the control plane runs as", err))
		case err != nil:
			r.add(isOtherwise, "state", fmt.Sprintf("%v; %s", err, look.lost))
		case found != "":
			r.add(isFine, "state", found)
		}
	}
}

// oldPatience is how long a program may take to say what it is.
var oldPatience = 10 * time.Second

// flagLine begins what a help text says of a flag; what it goes on with is set in further.
var flagLine = regexp.MustCompile(`^ {2,6}-`)

// defaulted is a line of a help text that says a flag's default.
var defaulted = regexp.MustCompile(`(?s)^ +(?:-\w, )?--([\w-]+).*\(default\s+(.*)\)\s*$`)

// beside asks another version's program for its version and its defaults, and tells of those that
// are others here, and that nobody sets.
func (r *upgradeReport) beside(ctx context.Context, old string, args, environ []string) error {
	ctx, cancel := context.WithTimeout(ctx, oldPatience)
	defer cancel()
	said, err := exec.CommandContext(ctx, old, "version").Output()
	if err != nil {
		return err
	}
	if words := strings.Fields(string(said)); r.Since == "" && len(words) > 1 && words[0] == "coxswain" {
		r.Since = words[1]
	}
	help, err := exec.CommandContext(ctx, old, "discovery", "--"+helpAllFlag).Output()
	if err != nil { // v0.1.0 shows all at once
		help, err = exec.CommandContext(ctx, old, "discovery", "--help").Output()
	}
	if err != nil {
		return err
	}
	if !strings.Contains(string(help), "  --") {
		r.add(isUnread, "settings", fmt.Sprintf("--old says no flags: %s discovery --%s has none, so that its defaults are not compared", old, helpAllFlag))
		return nil
	}
	given := isSaid(args, environ)
	was, is := defaults(string(help)), defaults(settings.Help(discoveryFlags("discovery"), true))
	for _, name := range settings.Names() {
		if !given[name] && was[name] != is[name] && strings.Contains(string(help), "--"+name+" ") {
			r.add(isOtherwise, "settings", fmt.Sprintf("%s: nobody sets it, and its default was %s and is %s",
				name, cmp.Or(was[name], "empty"), cmp.Or(is[name], "empty")))
		}
	}
	return nil
}

// isSaid names the settings that a command line, an environment and their file say.
func isSaid(args, environ []string) map[string]bool {
	all := map[string]bool{}
	fs := discoveryFlags("discovery")
	fs.ParseErrorsAllowlist.UnknownFlags = true
	_ = fs.Parse(args) // what is wrong with it was said
	for _, name := range settings.Said(fs, environ) {
		all[name] = true
	}
	return all
}

// defaults reads them from the help of discovery, by flags' names.
func defaults(help string) map[string]string {
	found := map[string]string{}
	var one string
	end := func() {
		if m := defaulted.FindStringSubmatch(one); m != nil {
			found[m[1]] = strings.Join(strings.Fields(m[2]), " ")
		}
	}
	for l := range strings.Lines(help) {
		if flagLine.MatchString(l) || !strings.HasPrefix(l, " ") {
			end()
			one = ""
		}
		one += l
	}
	end()
	return found
}

// changesSince are the sections of a changelog above that of a version, newest first. Of a version
// that it doesn't name nothing is known.
func changesSince(log, version string) (all []change) {
	version = strings.TrimPrefix(version, "v")
	if version == "" {
		return nil
	}
	sections := strings.Split("\n"+log, "\n## ")
	for _, s := range sections[1:] {
		title, text, _ := strings.Cut(s, "\n")
		if title == version {
			return all
		}
		all = append(all, change{title, strings.TrimSpace(text)})
	}
	return nil
}

// printUpgrade prints a report. The error is that something would be refused.
func printUpgrade(p *program, r *upgradeReport, format string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text, err := show.Raw(raw, format)
	if err != nil {
		return err
	}
	if text != nil {
		fmt.Fprintln(p.out, strings.TrimSuffix(string(text), "\n"))
	} else {
		upgradeTable(p, r)
	}
	if slices.ContainsFunc(r.Findings, func(o outcome) bool { return o.Means == isRefused }) {
		return fmt.Errorf("version %s would refuse what is marked so", r.Version)
	}
	return nil
}

func upgradeTable(p *program, r *upgradeReport) {
	for _, means := range []string{isRefused, isOtherwise, isPassed, isUnread, isFine} {
		for _, f := range r.Findings {
			if f.Means == means {
				fmt.Fprintf(p.out, "%-12s %-13s %s\n", f.Means, f.Of, f.Text)
			}
		}
	}
	if r.Since != "" && len(r.Changes) == 0 {
		fmt.Fprintf(p.out, "\nNothing is known of what changed since %s.\n", r.Since)
	}
	for _, c := range r.Changes {
		fmt.Fprintf(p.out, "\nSince %s, %s:\n\n%s\n", r.Since, c.Version, c.Text)
	}
}
