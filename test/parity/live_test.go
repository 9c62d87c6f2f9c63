package parity

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	states    = flag.String("states", "", "folders of states to compare in, separated by blanks")
	tool      = flag.String("tool", "", "the program that asks and compares")
	differing = flag.Int("diff", 5, "show up to this many differing fields of each resource")
	least     = flag.Float64("min", 98, "percentage of resources that are to be equal in every field")
	fields    = flag.Float64("min-fields", 99.5, "percentage of fields that are to be equal")
	each      = flag.Float64("min-state", 90, "percentage of resources that are to be equal in each state")
	ofGateway = flag.Float64("min-gateway", 99.5, "percentage of resources that are to be equal in states whose statuses are compared")
	statuses  = flag.Float64("min-statuses", 99, "percentage of statuses that are to be equal, and of objects that are deployed for Gateways")
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { flag.Parse(); mesh.Main(&program, m.Run) }

// tally is what the tool counts. Fields are the sum over resources of the share of fields that are
// equal.
type tally struct {
	Expected, Equal, Missing, Extra int
	Leaves                          float64
}

func (t *tally) add(o tally) {
	t.Expected += o.Expected
	t.Equal += o.Equal
	t.Missing += o.Missing
	t.Extra += o.Extra
	t.Leaves += o.Leaves
}

// shares are percentages: of resources that are equal, and of fields.
func (t tally) shares() (exact, fields float64) {
	if all := float64(t.Expected + t.Extra); all > 0 {
		return 100 * float64(t.Equal) / all, 100 * t.Leaves / all
	}
	return 100, 100
}

func (t tally) String() string {
	exact, fields := t.shares()
	return fmt.Sprintf("exact %5.1f %%  fields %5.1f %%  (%d expected, %d equal, %d missing, %d extra)", exact, fields, t.Expected, t.Equal, t.Missing, t.Extra)
}

// TestStates compares in each of the states that -states names. What it finds is printed as it
// comes.
func TestStates(t *testing.T) {
	if *states == "" {
		need.Left(t, "`make parity-live` names states")
	}
	c := newCluster(t)
	var total, gateways tally
	var written report
	for _, dir := range strings.Fields(*states) {
		var sum tally
		var said report
		t.Run(filepath.Base(dir), func(t *testing.T) {
			sum, said = c.compare(t, dir)
			if exact, _ := sum.shares(); exact < *each {
				t.Errorf("%.1f %% of resources are equal, %v are wanted in each state", exact, *each)
			}
		})
		c.wipe(t)
		for _, other := range c.others {
			other.wipe(t)
		}
		if c.mirror != nil {
			c.mirror.wipe(t)
		}
		total.add(sum)
		if said.statuses.all > 0 {
			gateways.add(sum)
			written.add(said)
		}
	}
	if written.statuses.all > 0 {
		fmt.Printf("%-44s %v\n%-44s %v\n", "STATES WITH STATUSES", gateways, "", written)
		if exact, _ := gateways.shares(); exact < *ofGateway {
			t.Errorf("%.2f %% of resources are equal in states whose statuses are compared; %v are wanted", exact, *ofGateway)
		}
		written.judge(t)
	}
	fmt.Printf("%-44s %v\n", "TOTAL", total)
	if exact, same := total.shares(); exact < *least || same < *fields {
		t.Errorf("%.2f %% of resources and %.2f %% of fields are equal; %v and %v are wanted", exact, same, *least, *fields)
	}
}

// patience is how often both are asked in a state of several clusters until they say the same, each
// time until their answers stay as they are.
const patience = 4

// compare asks both control planes in a state, and after each of its edits. Where the state says
// so, what both have written is compared as well.
func (c *cluster) compare(t *testing.T, dir string) (sum tally, said report) {
	places := c.places(t, dir)
	if found, _ := filepath.Glob(filepath.Join(dir, "objects", "*.yaml")); len(found) == 0 {
		t.Fatalf("%s has no objects/*.yaml", dir)
	}
	how := startOf(t, dir)
	words := replacements(t, places, how)
	homes := places
	if how.Statuses {
		homes = append(slices.Clone(places), place{c.second(t), dir})
	}
	definitions := how.definitions(t)
	for _, p := range homes {
		p.define(t, definitions)
	}
	change := func(folder string, then func(name string)) {
		names, of := files(homes, folder)
		for _, name := range names {
			together(t, name, of[name], words)
			then(name)
		}
	}
	if how.Statuses {
		together(t, "objects", joined(t, homes, "objects", c.injection(t)+classes), words)
	} else {
		change("objects", func(string) {})
	}
	if more := secrets(t, places); more != "" {
		c.Apply(t, words.Replace(more))
	}
	peer := kube.StartIstiodWith(t, c.Cluster, how.Flags, how.Istiod...)
	arguments := func(of *cluster, writes bool) []string {
		return slices.Concat([]string{"--plugins", how.set(t, writes), "--kubeconfig", of.Kubeconfig}, how.Flags, how.Coxswain)
	}
	plane := mesh.Start(t, program, "", arguments(c, false)...)
	if how.Statuses {
		mesh.Start(t, program, "", arguments(c.mirror, true)...)
	}
	asked := 0
	ask := func(after string) {
		name := strings.TrimSuffix(filepath.Base(dir)+" "+after, " ")
		var more report
		if how.Statuses {
			asked++
			more = c.compareWritten(t, asked)
		}
		got, differences := score(t, dir, plane.XDS, peer.XDS)
		for tries := 1; len(places) > 1 && got.Equal < got.Expected+got.Extra && tries < patience; tries++ { // other clusters may be read later
			got, differences = score(t, dir, plane.XDS, peer.XDS)
		}
		for _, difference := range slices.Concat(differences, more.differences) {
			fmt.Println("  " + difference)
		}
		fmt.Printf("%-44s %v\n", name, got)
		if how.Statuses {
			fmt.Printf("%-44s %v\n", "", more)
			said.add(more)
		}
		sum.add(got)
	}
	ask("")
	change("edits", ask)
	return sum, said
}

// unguarded is the set for a cluster, whose plugins may take away as much at once as they like, and
// serve nothing that istiod doesn't: it asks nobody.
func unguarded(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	set := bytes.ReplaceAll(coxswain.KubernetesSet(), []byte("\n    onLoss: apply"), nil) // which some have already
	set = bytes.ReplaceAll(set, []byte("\n    builtin:"), []byte("\n    guard: {maxRemoved: 100%}\n    onLoss: apply\n    builtin:"))
	set = bytes.ReplaceAll(set, []byte(", beyond: true"), nil)
	if err := os.WriteFile(file, set, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// score has the tool ask ours, and the peer, whose answers are right. It returns the lines that say
// what differs, too.
func score(t *testing.T, dir, ours, peer string) (tally, []string) {
	cmd := exec.Command(*tool, "score", "--json", "--diff", fmt.Sprint(*differing), "--addr", ours, "--want", peer, dir)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	var result struct{ Total tally }
	if json.Unmarshal([]byte(lines[last]), &result) != nil || failed.Len() > 0 {
		t.Fatalf("%v: %s", err, failed.String())
	}
	return result.Total, lines[:last]
}

// together applies the files of one name at once, each to its cluster.
func together(t *testing.T, name string, files []placed, words *strings.Replacer) {
	t.Helper()
	done := t.Run(name, func(t *testing.T) {
		for _, file := range files {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				file.in.edit(t, file.path, words)
			})
		}
	})
	if !done {
		t.FailNow()
	}
}

// edit applies a file, with words in it replaced, or deletes what it names.
func (c *cluster) edit(t *testing.T, file string, words *strings.Replacer) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(file, ".delete.yaml") {
		c.Apply(t, words.Replace(string(text)))
		return
	}
	c.Kubectl(t, "delete", "--force", "--grace-period", "0", "--ignore-not-found", "--wait=false", "-f", file)
	c.bury(t)
}
