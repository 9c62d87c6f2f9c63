package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// updateStable adds what is new to docs/stable.txt, as a release does; nothing is taken away.
var updateStable = flag.Bool("update-stable", false, "add what is new to docs/stable.txt")

// TestStable: what docs/stable.txt lists is still there: commands, their flags, which settings are,
// too, metrics, the fields of the contract with their numbers and types, keys of plugins.yaml,
// values of the chart, and fields of what commands answer in JSON.
func TestStable(t *testing.T) {
	const file = "../../docs/stable.txt"
	is := map[string]bool{}
	for _, line := range slices.Concat(commandLines(t), metricLines(t), contractLines(t), answerLines(t),
		schemaLines(t, "../../docs/plugins.schema.json", "key"), schemaLines(t, "../../deploy/chart/values.schema.json", "value")) {
		is[line] = true
	}
	text, err := os.ReadFile(file)
	if err != nil && !*updateStable {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			listed = append(listed, line)
		}
	}
	if *updateStable {
		for line := range is {
			listed = append(listed, line)
		}
		slices.Sort(listed)
		listed = slices.Compact(listed)
		head := "# What users, scripts and plugins may count on (docs/stability.md). A release adds lines; none goes away before the next major version.\n"
		if err := os.WriteFile(file, []byte(head+strings.Join(listed, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range listed {
		path := line[:strings.LastIndexByte(line, ' ')+1]
		taken := (strings.HasPrefix(line, "key ") || strings.HasPrefix(line, "value ")) && is[path+anyType]
		if !is[line] && !taken {
			t.Errorf("%s is promised by docs/stable.txt, and gone", line)
		}
	}
	if len(listed) < 2000 {
		t.Errorf("only %d things are promised", len(listed))
	}
}

func commandLines(t *testing.T) (lines []string) {
	t.Helper()
	p := &program{}
	var below func(c *cobra.Command)
	below = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		lines = append(lines, "command "+c.CommandPath())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && f.Name != "version" {
				lines = append(lines, fmt.Sprintf("flag %s --%s %s", c.CommandPath(), f.Name, f.Value.Type()))
			}
		})
		for _, sub := range c.Commands() {
			below(sub)
		}
	}
	below(rootCommand(p, nil))
	return lines
}

var metric = regexp.MustCompile(`"(coxswain_[a-z_]+[a-z])"`)

// metricLines are the names of metrics that stand in the core's source as a whole.
func metricLines(t *testing.T) (lines []string) {
	t.Helper()
	err := filepath.WalkDir("../../core", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range metric.FindAllSubmatch(text, -1) {
			lines = append(lines, "metric "+string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func contractLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../sdk/proto/testdata/contract.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	var below func(name string, m *descriptorpb.DescriptorProto)
	below = func(name string, m *descriptorpb.DescriptorProto) {
		name += "." + m.GetName()
		for _, f := range m.GetField() {
			kind := strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_")) + f.GetTypeName()
			lines = append(lines, fmt.Sprintf("field %s.%s = %d %s %s", name, f.GetName(), f.GetNumber(),
				strings.ToLower(strings.TrimPrefix(f.GetLabel().String(), "LABEL_")), kind))
		}
		for _, n := range m.GetNestedType() {
			below(name, n)
		}
	}
	for _, f := range set.GetFile() {
		for _, m := range f.GetMessageType() {
			below(f.GetPackage(), m)
		}
	}
	return lines
}
