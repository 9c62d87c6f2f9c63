package release_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
)

// tag is that of the release that is tried; README has its files' names.
const tag = "v0.2.0"

// tools is the folder with GoReleaser.
func tools(t *testing.T) string {
	t.Helper()
	return program.Built(t, "test/release/goreleaser", "goreleaser", "goreleaser")
}

var (
	releaseOnce sync.Once
	releaseDir  string
)

// TestMain removes what a release was made in.
func TestMain(m *testing.M) {
	code := m.Run()
	if releaseDir != "" {
		_ = os.RemoveAll(releaseDir)
	}
	os.Exit(code)
}

// released makes a release of a copy of the source, once, and returns the folder with its files.
func released(t *testing.T) string {
	t.Helper()
	need.All(t)
	tool := tools(t)
	releaseOnce.Do(func() {
		var err error
		if releaseDir, err = os.MkdirTemp("", "release"); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(releaseDir, "source")
		copied(t, source)
		cmd := exec.Command(filepath.Join(tool, "goreleaser"), "release", "--snapshot", "--clean", "--skip=publish,sign")
		cmd.Dir, cmd.Env = source, append(os.Environ(), "GORELEASER_CURRENT_TAG="+tag,
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=remote.origin.url", "GIT_CONFIG_VALUE_0=https://github.com/coxswain-mesh/coxswain")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	dist := filepath.Join(releaseDir, "source", "dist")
	if _, err := os.Stat(filepath.Join(dist, "checksums.txt")); err != nil {
		t.Fatalf("the release was not made: %v", err)
	}
	return dist
}

// copied copies the source, changes that nobody has committed too, into a repository of its own.
func copied(t *testing.T, to string) {
	t.Helper()
	script := `set -e
mkdir -p "$1"
git ls-files -z -c -o --exclude-standard | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar --null -T - -cf - | tar -xf - -C "$1"
cd "$1"
git init -q
git add -A
git -c user.name=release -c user.email=release@localhost commit -q -m release --date 2026-01-01T00:00:00Z`
	cmd := exec.Command("bash", "-c", script, "copy", to)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestFiles: a release has an archive, packages and a list of parts for each platform, whose
// checksums are right.
func TestFiles(t *testing.T) {
	dist := released(t)
	text, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
		if is := fileSum(t, filepath.Join(dist, name)); is != want {
			t.Errorf("%s has %s, not %s", name, is, want)
		}
	}
	for _, a := range []string{"amd64", "arm64"} {
		for _, suffix := range []string{"tar.gz", "deb", "rpm", "spdx.json"} {
			if name := "coxswain_0.2.0_linux_" + a + "." + suffix; !slices.Contains(names, name) {
				t.Errorf("%s is missing of %q", name, names)
			}
		}
		archive(t, filepath.Join(dist, "coxswain_0.2.0_linux_"+a+".tar.gz"))
		parts(t, filepath.Join(dist, "coxswain_0.2.0_linux_"+a+".spdx.json"))
	}
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// archive looks at an archive's files.
func archive(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uname != "root" || h.Name == "coxswain" && h.Mode != 0o755 {
			t.Errorf("%s in %s is %s's, with mode %o", h.Name, path, h.Uname, h.Mode)
		}
	}
	for _, name := range []string{
		"coxswain", "LICENSE", "NOTICE", "CHANGELOG.md", "man1/coxswain-discovery.1", "systemd/coxswain.service", "systemd/settings.yaml",
		"completions/coxswain.bash", "completions/_coxswain", "completions/coxswain.fish", "completions/coxswain.ps1",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s has no %s, but %q", path, name, names)
		}
	}
}

// parts looks at a list of parts.
func parts(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct{ Name string }
	}
	if err := json.Unmarshal(text, &list); err != nil || list.SPDXVersion != "SPDX-2.3" || len(list.Packages) < 20 {
		t.Errorf("%s: %v: %.100s", path, err, text)
	}
}

// TestFormula: the formula for Homebrew has the archives' checksums, and is Ruby.
func TestFormula(t *testing.T) {
	dist := released(t)
	cmd := exec.Command("deploy/homebrew/formula.sh", tag, filepath.Join(dist, "checksums.txt"))
	cmd.Dir = root
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"amd64", "arm64"} {
		if sum := fileSum(t, filepath.Join(dist, "coxswain_0.2.0_linux_"+a+".tar.gz")); !strings.Contains(string(text), `sha256 "`+sum+`"`) {
			t.Errorf("it has no %s:\n%s", sum, text)
		}
	}
	other := exec.Command("deploy/homebrew/formula.sh", "v9.9.9", filepath.Join(dist, "checksums.txt"))
	other.Dir = root
	if out, err := other.CombinedOutput(); err == nil || !strings.Contains(string(out), "has no coxswain_9.9.9_linux_amd64.tar.gz") {
		t.Errorf("of a version that isn't there it says %v: %s", err, out)
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		need.Missing(t, "ruby; install ruby")
	}
	file := filepath.Join(t.TempDir(), "coxswain.rb")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(ruby, "-c", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}

// inOwnRoot runs a script of bash as root where all of this machine's files are seen, and nothing
// that is written stays: in namespaces of files and of the network of its own. Its folder has dist.
func inOwnRoot(t *testing.T, dist, script string) string {
	t.Helper()
	if os.Getuid() != 0 {
		need.Missing(t, "a root of its own; run as root")
	}
	const enter = `set -e
ip link set lo up
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/all
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/all
mount -t proc none /mnt/all/proc
mount -t tmpfs none /mnt/all/run
mount -t tmpfs none /mnt/all/tmp
mkdir /mnt/all/srv/here
mount --rbind /dev /mnt/all/dev
mkdir /mnt/all/srv/here/dist
mount --bind "$1" /mnt/all/srv/here/dist
exec chroot /mnt/all bash -euxc "cd /srv/here; $2"`
	cmd := exec.Command("timeout", "-k", "5", "600", "unshare", "--mount", "--net", "--pid", "--fork",
		"--kill-child", "--propagation", "private", "bash", "-c", enter, "enter", dist, script)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// line is a command that README has, by what it begins with, without what is said of it.
func line(t *testing.T, begins string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    (` + regexp.QuoteMeta(begins) + `.*?)(?: +#.*)?$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("README.md has no command %s", begins)
	}
	return string(found[1])
}

// answers waits for a control plane, asks it, and ends it.
const answers = `
for i in $(seq 600); do curl -sf http://127.0.0.1:8080/ready && break; kill -0 $! || { wait $!; exit 1; }; sleep 0.1; done
curl -sf http://127.0.0.1:8080/ready
coxswain plugins
kill $!
wait $!`

// TestDebian: what README says for Debian installs the package; the service's command serves as
// its user; settings outlive a newer package and a removal.
func TestDebian(t *testing.T) {
	dist := released(t)
	if _, err := exec.LookPath("apt"); err != nil {
		need.Impossible(t, "there is no apt")
	}
	out := inOwnRoot(t, dist, line(t, "apt install")+` -y
test "$(coxswain version | cut -d' ' -f2)" = `+tag+`
systemctl enable coxswain
test -L /etc/systemd/system/multi-user.target.wants/coxswain.service
systemd-analyze verify coxswain.service
test -s /usr/share/man/man1/coxswain-discovery.1
bash -c 'source /usr/share/bash-completion/completions/coxswain && complete -p coxswain'
install -d -o nobody /run/coxswain /var/lib/coxswain
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/coxswain.service)
XDG_RUNTIME_DIR=/run/coxswain setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs --bounding-set=-all $command &
export XDG_RUNTIME_DIR=/run/coxswain`+answers+`
test -s /var/lib/coxswain/history.db
echo '# mine' >>/etc/coxswain/settings.yaml
dpkg -i dist/coxswain_0.2.0_linux_amd64.deb
apt remove -y coxswain
test ! -e /usr/bin/coxswain
grep -q '# mine' /etc/coxswain/settings.yaml`)
	if !strings.Contains(out, "serving") {
		t.Errorf("it says\n%s", out)
	}
}

// TestPlainBinary: what README says for a plain binary unpacks an archive and serves.
func TestPlainBinary(t *testing.T) {
	dist := released(t)
	unpack, run, _ := strings.Cut(line(t, "tar xzf"), " && ")
	out := inOwnRoot(t, dist, `mkdir config
`+unpack+`
`+run+` &
PATH=$PATH:/srv/here`+answers)
	if !strings.Contains(out, "serving") {
		t.Errorf("it says\n%s", out)
	}
}

// TestFedora: the package for Fedora says what it has, and installs where rpm is.
func TestFedora(t *testing.T) {
	dist := released(t)
	if _, err := exec.LookPath("rpm"); err != nil {
		need.Missing(t, "rpm; install rpm")
	}
	out := inOwnRoot(t, dist, `rpm -i --nodeps dist/coxswain_0.2.0_linux_amd64.rpm
rpm -V --nodeps coxswain
test "$(coxswain version | cut -d' ' -f2)" = `+tag+`
rpm -qc coxswain
rpm -e coxswain
test ! -e /usr/bin/coxswain`)
	if !strings.Contains(out, "/etc/coxswain/settings.yaml") {
		t.Errorf("its settings are no configuration:\n%s", out)
	}
}
