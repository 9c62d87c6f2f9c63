package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
)

// password is that of the key that signs in tests.
const password = "a-password"

// signer signs as the machine that makes releases does, with a key of the test's own.
type signer struct {
	t          *testing.T
	dir, tools string
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	need.All(t)
	s := &signer{t: t, dir: t.TempDir(), tools: program.Built(t, "test/artifacts/cosign", "cosign", "cosign")}
	if out, err := s.run("cosign", "generate-key-pair"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

// run runs a command in the signer's folder; cosign is in the path, and the key in the environment.
func (s *signer) run(name string, args ...string) (string, error) {
	s.t.Helper()
	if name == "cosign" {
		name = filepath.Join(s.tools, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.tools+":"+os.Getenv("PATH"), "COSIGN_PASSWORD="+password,
		"COSIGN_KEY="+filepath.Join(s.dir, "cosign.key"), "COSIGN_FLAGS=--allow-http-registry")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), password) {
		s.t.Errorf("%s %q shows the password", name, args)
	}
	return string(out), err
}

// script is deploy/sign.sh.
func script(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(root + "/deploy/sign.sh")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSigned: what the release's machine signs is verified as docs/install.md says, and what was
// changed since is not.
func TestSigned(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	file := filepath.Join(s.dir, "checksums.txt")
	if err := os.WriteFile(file, []byte("abc  coxswain.tar.gz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"blob", file, file + ".bundle"}, {"provenance", file, file + ".provenance.bundle", tag, "1234567"}} {
		if out, err := s.run(script(t), args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	verify := [][]string{
		{"verify-blob", "--key", "cosign.pub", "--insecure-ignore-tlog", "--bundle", file + ".bundle", file},
		{
			"verify-blob-attestation", "--key", "cosign.pub", "--insecure-ignore-tlog", "--type", "slsaprovenance1",
			"--bundle", file + ".provenance.bundle", file,
		},
	}
	for _, args := range verify {
		if out, err := s.run("cosign", args...); err != nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(file, []byte("abd  coxswain.tar.gz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range verify {
		if out, err := s.run("cosign", args...); err == nil {
			t.Errorf("%q takes what was changed\n%s", args, out)
		}
	}
	if out, err := exec.Command(script(t), "blob", file, file+".x").CombinedOutput(); err == nil || !strings.Contains(string(out), "COSIGN_KEY") {
		t.Errorf("without a key it says %v: %s", err, out)
	}
}

// TestSignedImage: an image in a registry is signed by its digest, and verified.
func TestSignedImage(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	tool, self := filepath.Join(s.dir, "image"), executable(t)
	if out, err := exec.Command("go", "build", "-C", root+"/deploy/image", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addr := program.Registry(t)
	push := func(version string) string {
		out, err := s.run(tool, "--program", "linux/amd64="+self, "--version", version, "--push", addr+"/mesh/coxswain:"+version, "--plain")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return addr + "/mesh/coxswain@" + strings.TrimSpace(out)
	}
	image, other := push("v1"), push("v2")
	if out, err := s.run(script(t), "image", image); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	verify := func(of string) (string, error) {
		return s.run("cosign", "verify", "--key", "cosign.pub", "--insecure-ignore-tlog", "--allow-http-registry", of)
	}
	if out, err := verify(image); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := verify(other); err == nil {
		t.Errorf("it takes an image that nobody signed\n%s", out)
	}
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
