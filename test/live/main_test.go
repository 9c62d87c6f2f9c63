package live

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	netns.Main()
	mesh.Quick(&program, m.Run)
}
