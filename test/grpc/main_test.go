package grpc

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	mesh.Quick(&program, m.Run)
}
