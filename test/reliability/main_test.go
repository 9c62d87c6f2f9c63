package reliability

import (
	"flag"
	"os"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// program is the path of the binary under test.
var program string

var (
	all = flag.Bool("reliability.all", false, "run all cases, look at delays, and print a line for each on standard error")
	doc = flag.String("reliability.doc", "", "the document whose table is written anew")
)

func TestMain(m *testing.M) {
	mesh.Quick(&program, func() int {
		remove, err := buildRogues()
		defer remove()
		if err != nil {
			os.Stderr.WriteString(err.Error())
			return 1
		}
		return m.Run()
	})
}
