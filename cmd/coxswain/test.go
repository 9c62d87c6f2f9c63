package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/cmd/internal/expectations"
)

// rehearsal is what `coxswain test` was told.
type rehearsal struct {
	p                   *program
	only, junit, output string
	allRules            bool
	patience            time.Duration
	// live is a control plane that runs, or a recording, at addr.
	live bool
	addr string
}

func testCommand(p *program) *cobra.Command {
	t := &rehearsal{p: p}
	c := &cobra.Command{
		Use:   "test DIR|FILE…",
		Short: "Play requests over a directory of resources, and say which don't do what files expect of them",
		Long: `Test plays requests over a directory of resources, and says which don't do what is expected of them, with the way that they took, and which
rules no request comes to. Nothing is sent: a control plane on loopback makes what the proxies would get, and the requests are walked through that, through
the client's proxy and then through those of the workloads behind it.

DIR has files whose names are, or end in, expectations.yaml; docs/expectations.md says what is in one:

  config: config              # the directory with the resources
  workloads:
    web:  {namespace: shop, ip: 10.0.0.1, labels: {app: web}}
    cart: {namespace: shop, ip: 10.0.0.2, labels: {app: cart}}
  expectations:
  - name: a tenth of carts is served by v2
    request: {from: web, url: http://cart/}
    expect: {to: [{host: cart, subset: v1, percent: 90}, {host: cart, subset: v2, percent: 10}]}

With --live it is played on what the connected proxies of a running control plane are to have, and with --from on a recording, the archive of coxswain
bug-report: workloads are found among the proxies by their type, namespace, service account and labels, and config is not read. Debug pages alone are asked.

The exit status is 0, 1 where an expectation fails or a resource is refused (with --all-rules also where a rule is touched by no request), and 2 for
files that can't be read or played.`,
		Example: `  coxswain test examples/expectations
  coxswain test mesh/ --junit report.xml --all-rules
  coxswain test mesh/ --run cart -o wide
  coxswain test mesh/ --live --addr localhost:8080
  coxswain test mesh/ --from report.zip`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("coxswain test wants DIR, with files named " + expectations.Suffix + ", or such files")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return t.run(c.Context(), args) },
	}
	f := c.Flags()
	f.StringVar(&t.only, "run", "", "only the expectations whose names contain this")
	f.StringVar(&t.junit, "junit", "", "file to write a JUnit report to")
	f.BoolVar(&t.allRules, "all-rules", false, "fail where a rule is touched by no expectation")
	f.DurationVar(&t.patience, "timeout", time.Minute, "how long each control plane may take to start, and to answer a proxy")
	f.BoolVar(&t.live, "live", false, "play on what connected proxies of the control plane at --addr are to have")
	addrFlag(t.p, c, &t.addr)
	fromFlag(c, &t.addr)
	formatFlag(c, &t.output)
	return c
}

func (t *rehearsal) run(ctx context.Context, paths []string) error {
	if err := checkFormat(t.output); err != nil {
		return err
	}
	if t.only != "" && t.allRules {
		return usageError{errors.New("--all-rules asks what all expectations touch: leave --run out")}
	}
	reports, err := t.play(ctx, paths)
	if err != nil {
		return usageError{err} // 1 says that an expectation failed
	}
	err = (&asked{p: t.p, format: t.output}).print(reports, func(w io.Writer, wide bool) {
		for _, r := range reports {
			_ = r.Write(w, wide)
		}
	})
	if err == nil && t.junit != "" {
		err = writeXML(t.junit, junitOf(reports))
	}
	if err != nil {
		return usageError{err}
	}
	if slices.ContainsFunc(reports, func(r *expectations.Report) bool { return r.Failed() || t.allRules && len(r.Untouched()) > 0 }) {
		return errUnexpected
	}
	return nil
}

// errUnexpected is the end of a test that has shown what is otherwise than expected.
var errUnexpected = errors.New("not all is as expected")

func (t *rehearsal) play(ctx context.Context, paths []string) (reports []*expectations.Report, err error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own path: %w", err)
	}
	runner := expectations.Runner{Program: own, Environ: t.p.environ, Patience: t.patience, Only: t.only}
	if t.live || strings.HasPrefix(t.addr, archived) {
		runner.Live = func(ctx context.Context, page string) ([]byte, error) {
			raw, err := get(ctx, t.addr, page)
			return raw, orElsewhere(ctx, t.p, err)
		}
	}
	played, read := 0, []string{}
	for _, path := range paths {
		names, err := expectations.Find(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			f, err := expectations.Read(name)
			if err != nil {
				return nil, err
			}
			r, err := runner.Run(ctx, f)
			if err != nil {
				return nil, err
			}
			reports, read = append(reports, r), append(read, name)
			played += len(r.Results)
		}
	}
	switch {
	case played > 0:
	case t.only == "":
		return nil, fmt.Errorf("%s has no expectations; docs/expectations.md says what is in one", strings.Join(read, ", "))
	default:
		return nil, fmt.Errorf("no expectation's name contains %q (--run)", t.only)
	}
	return reports, nil
}

// junitOf is a report for CI systems: a suite for each file. Objects that are refused are a case.
func junitOf(reports []*expectations.Report) (all junitSuites) {
	for _, r := range reports {
		s := junitSuite{Name: r.File, Tests: len(r.Results)}
		for _, x := range r.Results {
			c := junitCase{Class: "coxswain.expectations", Name: x.Name, Time: fmt.Sprintf("%.3f", x.Took.Seconds())}
			if len(x.Faults) > 0 {
				s.Failures++
				text := strings.Join(x.Faults, "\n")
				for _, at := range x.Walks {
					text += fmt.Sprintf("\nthe way through the proxy of %s:\n%s", at.Workload, at.Outcome)
				}
				c.Failure = &junitMessage{Message: x.Faults[0], Text: fmt.Sprintf("%s:%d\n%s", r.File, x.Line, text)}
			}
			s.Cases = append(s.Cases, c)
		}
		if r.Refuses() {
			s.Tests++
			s.Failures++
			s.Cases = append(s.Cases, junitCase{Class: "coxswain.expectations", Name: "resources", Time: "0",
				Failure: &junitMessage{Message: "resources are refused, so that they are not served"}})
		}
		all.Suites = append(all.Suites, s)
	}
	return all
}
