package traffic

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	mesh.Main(&program, mesh.LeakFree(m))
}
