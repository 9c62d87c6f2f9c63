// Package e2e tests the whole as users run it: the program, its plugins, real Envoys, and traffic through them while the configuration changes.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/mesh"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	binary, remove, err := mesh.Build("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = binary
	code := m.Run()
	remove()
	os.Exit(code)
}
