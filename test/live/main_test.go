package live

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/netns"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	netns.Main()
	mesh.Quick(&program, m.Run)
}
