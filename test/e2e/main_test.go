// Package e2e tests the whole as users run it: the program, its plugins, real Envoys, and traffic
// through them while the configuration changes.
package e2e

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	mesh.Quick(&program, m.Run)
}
