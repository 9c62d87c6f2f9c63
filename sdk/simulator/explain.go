package simulator

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// String explains the outcome to people.
func (o *Outcome) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, s := range o.Steps {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.At, s.Chosen, s.Because)
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "\n%s: %s\n", o.Verdict, o.Reason)
	if o.Answer.Status != 0 {
		fmt.Fprintf(&b, "  status %d %s\n", o.Answer.Status, o.Answer.Details)
	}
	for _, s := range o.Upstream.Clusters {
		b.WriteString(s.String())
	}
	for _, s := range o.Upstream.Mirrors {
		b.WriteString("  a copy goes to\n" + s.String())
	}
	o.beside(&b)
	return b.String()
}

// beside writes what goes with the outcome.
func (o *Outcome) beside(b *strings.Builder) {
	if o.Delay > 0 {
		fmt.Fprintf(b, "  delayed by %v\n", o.Delay)
	}
	if o.Upstream.Timeout > 0 {
		fmt.Fprintf(b, "  at most %v\n", o.Upstream.Timeout)
	}
	if o.Upstream.Retries > 0 {
		fmt.Fprintf(b, "  tried again up to %d times after %s\n", o.Upstream.Retries, o.Upstream.RetryOn)
	}
	if o.Upstream.Sticky != "" {
		fmt.Fprintf(b, "  the endpoint is chosen by %s\n", o.Upstream.Sticky)
	}
	for _, c := range o.Chances {
		fmt.Fprintf(b, "  but %g %% get %d: %s\n", c.Percent, c.Status, c.Reason)
	}
	for _, a := range o.Assumes {
		fmt.Fprintf(b, "  if %s\n", a)
	}
}

// String is a cluster with its endpoints.
func (s Share) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %5.1f %%  %s\n", s.Percent, s.Cluster)
	if s.Fault != "" {
		fmt.Fprintf(&b, "           %s\n", s.Fault)
	}
	for _, e := range s.Endpoints {
		fmt.Fprintf(&b, "           %5.1f %%  %s", e.Percent, e.Address)
		if e.Locality != "" {
			fmt.Fprintf(&b, "  %s", e.Locality)
		}
		if e.TLS != nil {
			fmt.Fprintf(&b, "  TLS %s", e.TLS.SNI)
		}
		b.WriteString("\n")
	}
	return b.String()
}
