package swap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// ErrRefused is that a guard refused a change.
var ErrRefused = errors.New("a guard refused it")

// judge reports whether a switch may go on, of which the guard says why it should not.
func judge(why []string, o Options) error {
	switch {
	case o.DryRun:
		return &comparedError{why}
	case len(why) > 0 && !o.Force:
		return &refusedError{why}
	}
	return nil
}

// comparedError ends a dry run, with what the guard says.
type comparedError struct{ why []string }

func (e *comparedError) Error() string { return "only compared" }

type refusedError struct{ why []string }

func (e *refusedError) Error() string { return strings.Join(e.why, "; ") }

func (e *refusedError) Unwrap() error { return ErrRefused }

// stopped notes why there was no switch; nil if none was wanted.
func (c *attempt) stopped(err error) error {
	var refused *refusedError
	var compared *comparedError
	switch {
	case errors.As(err, &compared):
		c.compared(compared.why)
		return nil
	case errors.As(err, &refused):
		c.step(Refused, refused.why...)
	default:
		c.step(Failed, err.Error())
	}
	return err
}

// guardOf is an entry's guard, or the default.
func guardOf(e *manifest.Entry) guard.Guard {
	g := guard.Default()
	if e.Guard != nil && e.Guard.MaxRemoved != (manifest.Share{}) {
		g.MaxRemoved = guard.Share(e.Guard.MaxRemoved)
	}
	return g
}

// crowded says why two instances of a plugin at once would take more memory than is free.
func crowded(name string, running []host.Status, free uint64) string {
	for _, st := range running {
		if st.Entry.Name == name && st.Memory > free {
			return fmt.Sprintf("memory for both instances would exceed what there is: the old one has %.0f MB, %.0f MB are free",
				float64(st.Memory)/1e6, float64(free)/1e6)
		}
	}
	return ""
}
