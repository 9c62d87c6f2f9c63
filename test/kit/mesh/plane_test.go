package mesh_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// killed says, in its environment, that a test is one that will be killed.
const killed = "COXSWAIN_TEST_THAT_IS_KILLED"

// TestPlaneEndsWithAKilledTest: what a test has started doesn't outlive it, even if it can't clean
// up.
func TestPlaneEndsWithAKilledTest(t *testing.T) {
	program := os.Getenv(killed)
	if program != "" {
		fmt.Fprintln(os.Stderr, mesh.Start(t, program, "").PID())
		select {}
	}
	program = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 300\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := exec.Command(os.Args[0], "-test.run", t.Name())
	other.Env = append(os.Environ(), killed+"="+program)
	said, err := other.StderrPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := bufio.NewScanner(said)
	line.Scan()
	pid, err := strconv.Atoi(line.Text())
	if killErr := other.Process.Kill(); killErr != nil || err != nil {
		t.Fatal(err, killErr)
	}
	_ = other.Wait()
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	wait.For(t, "what the test had started is gone", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !bytes.Contains(stat, []byte(") Z ")) { // nobody may be there to bury it
			return fmt.Errorf("process %d is there: %s", pid, stat)
		}
		return nil
	})
}
