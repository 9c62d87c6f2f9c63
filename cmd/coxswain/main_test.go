package main

import (
	"os"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain is the program itself where a test starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"discovery", "plugin"}, os.Args[1]) {
		main()
		return
	}
	testscript.Main(m, map[string]func(){"coxswain": main})
}

// TestCommandLine runs the scripts in testdata. They don't start a control plane: test/e2e does.
func TestCommandLine(t *testing.T) { testscript.Run(t, testscript.Params{Dir: "testdata"}) }
