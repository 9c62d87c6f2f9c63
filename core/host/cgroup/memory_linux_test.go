package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// TestMain makes the test's binary a core that runs in a group of its own, and a program that needs
// memory.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("TEST_CORE_IN") != "":
		core(os.Getenv("TEST_CORE_IN"))
	case os.Getenv("TEST_HUNGRY") != "":
		hungry()
	default:
		os.Exit(m.Run())
	}
}

// hungry waits for a word, then takes 256 MiB.
func hungry() {
	_, _ = fmt.Scanln()
	var all [][]byte
	for range 256 {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
	}
	fmt.Println("nobody minds", len(all), "MiB")
}

// core divides the group that it is put into, and has a hungry program in a group of 64 MiB.
func core(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(write(dir+"/cgroup.procs", strconv.Itoa(os.Getpid())))
	tree, err := Open(dir)
	fail(err)
	g, err := tree.Make("hungry", 64<<20)
	fail(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_CORE_IN=", "TEST_HUNGRY=1")
	in, err := cmd.StdinPipe()
	fail(err)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.Dir().Fd())}
	fail(cmd.Start())
	_, err = in.Write([]byte("go\n"))
	fail(err)
	err = cmd.Wait()
	fmt.Println(err, g.Exceeded())
	g.Remove()
	tree.Close()
	left, err := os.ReadDir(dir)
	fail(err)
	for _, e := range left {
		if e.IsDir() {
			fmt.Println("left", e.Name())
		}
	}
	fail(write(dir+"/../cgroup.procs", strconv.Itoa(os.Getpid())))
}

// The kernel ends a group that needs more memory than it may have, says so, and nothing is left of
// it.
func TestMemory(t *testing.T) {
	dir := writable(t)
	if _, err := os.Stat(dir + "/memory.max"); err != nil {
		need.Impossible(t,
			"the controller of memory is not in cgroup v2 here: boot with systemd.unified_cgroup_hierarchy=1, or enable it in cgroup.subtree_control")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_CORE_IN="+dir)
	out, err := cmd.CombinedOutput()
	if string(out) != "signal: killed true\n" || err != nil {
		t.Errorf("%s %v", out, err)
	}
}
