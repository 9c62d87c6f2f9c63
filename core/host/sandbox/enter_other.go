//go:build !linux

package sandbox

import "errors"

// Hide does nothing here.
func Hide() error { return nil }

// OnThread runs do beside the caller.
func OnThread(do func()) { go do() }

// Enter takes nothing: sandboxes are Linux's.
func Enter(rules Rules) (report Report, err error) {
	if rules.Files {
		return report, errors.New("`sandbox.read` and `sandbox.write` are for Linux; take them out")
	}
	return Report{Lacking: []string{"sandboxes are Linux's"}}, nil
}
