//go:build !wasip1

package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Serve runs a plugin in the process that the core started for it, and does not return: the process
// ends with the session, with status 0 if the core ended it and 1 otherwise. Started by hand it
// says how a plugin is used. Standard output and standard error may be written to; the core keeps
// the last lines for its error messages.
func Serve(d Declaration) {
	p := d.declare()
	err := process.Serve(func(ctx context.Context, c session.Carrier) error {
		beLenient()
		go giveBack(ctx)
		err := Run(ctx, d, c)
		if err != nil {
			fmt.Fprintf(os.Stderr, "plugin %s: %v\n", p.Name, err)
		}
		return err
	})
	if errors.Is(err, process.ErrByHand) {
		fmt.Fprintf(os.Stderr, "This is %s %s, a plugin of the Coxswain control plane, which starts it itself. To use it, add to plugins.yaml:\n"+
			"  - name: %s\n    kind: %s\n    process: {command: %s}\n    insecure: true # or sha256: what sha256sum "+
			"prints of it\n", p.Name, p.Version, p.Name, p.kind, os.Args[0])
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
