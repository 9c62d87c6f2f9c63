package move

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// page is what is walked through.
const page = "../../docs/kubernetes.md"

// block are commands of the page.
type block struct {
	heading, text string
}

// blocks are those of a page that are marked as `sh`, in order.
func blocks(text string) (all []block) {
	heading, inside, begun := "", "", false
	for line := range strings.Lines(text) {
		switch {
		case line == "```sh\n":
			begun, inside = true, ""
		case begun && line == "```\n":
			begun = false
			all = append(all, block{heading, inside})
		case begun:
			inside += line
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "# "))
		}
	}
	return all
}

func read(t *testing.T) (text string, all []block) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if all = blocks(string(b)); len(all) == 0 {
		t.Fatal("the page has no commands")
	}
	return string(b), all
}

var (
	namespaceFlag  = regexp.MustCompile(`(?:--namespace|-n|label namespace)[ =]([a-z-]+)`)
	namespaceField = regexp.MustCompile(`(?m)\bnamespace: *([a-z-]+)`)
	command        = regexp.MustCompile(`(?m)^(?:until |[A-Z]+=\$\()?([a-z]+) `)
	// foreign is a command of somebody else's, with its first word, or the first two.
	foreign = regexp.MustCompile(`(?m)^(?:[A-Z]+=\$\()?(kubectl|helm) ((?:[a-z]+)(?: status| restart| values)?)(.*)$`)
	flag    = regexp.MustCompile(` (--[a-z-]+)`)
)

// TestPage: the page's commands can be run as far as a shell can tell without a cluster, those that
// are not ours are ones that a reader has, and they name the namespaces that the page is about, in
// flags and in manifests. Flags of ours are looked at with those of all pages.
func TestPage(t *testing.T) {
	text, all := read(t)
	if strings.Contains(text, "\n    ") && regexp.MustCompile(`(?m)^    (coxswain|kubectl|helm) `).MatchString(text) {
		t.Error("commands stand in a block that nobody runs: mark it as sh")
	}
	for _, b := range all {
		if out, err := exec.Command("/bin/sh", "-nc", b.text).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", b.heading, err, out, b.text)
		}
		if strings.ContainsRune(b.text, '\t') {
			t.Errorf("%s has tabs:\n%s", b.heading, b.text)
		}
		for _, pattern := range []*regexp.Regexp{namespaceFlag, namespaceField} {
			for _, m := range pattern.FindAllStringSubmatch(b.text, -1) {
				if !slices.Contains([]string{"istio-system", "shop", "bank"}, m[1]) {
					t.Errorf("%s names the namespace %s:\n%s", b.heading, m[1], b.text)
				}
			}
		}
		for _, m := range command.FindAllStringSubmatch(b.text, -1) {
			if !slices.Contains([]string{"coxswain", "kubectl", "helm", "kill"}, m[1]) {
				t.Errorf("%s has a command %s:\n%s", b.heading, m[1], b.text)
			}
		}
	}
}

// TestForeignCommands: kubectl and Helm have the flags that the page gives them.
func TestForeignCommands(t *testing.T) {
	at := map[string]string{"kubectl": kube.Programs(t), "helm": program.Built(t, "test/chart/helm", "helm", "helm")}
	_, all := read(t)
	known, n := map[string]string{}, 0
	for _, b := range all {
		for _, m := range foreign.FindAllStringSubmatch(strings.ReplaceAll(b.text, "\\\n", " "), -1) {
			of := m[1] + " " + m[2]
			if known[of] == "" {
				help, err := exec.Command(filepath.Join(at[m[1]], m[1]), append(strings.Fields(m[2]), "--help")...).Output()
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				known[of] = string(help) + " --namespace " // kubectl has it everywhere, and tells of it elsewhere
			}
			mine, _, _ := strings.Cut(m[3], " -- ") // the rest is what runs in a container
			for _, f := range flag.FindAllStringSubmatch(mine, -1) {
				if n++; !regexp.MustCompile(`\s` + f[1] + `[\s=,]`).MatchString(known[of]) {
					t.Errorf("%s: %s has no %s", b.heading, of, f[1])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d flags were found, which is too few to be all", n)
	}
}
