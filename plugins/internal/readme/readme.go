// Package readme takes the examples out of a plugin's README.md, so that a test can run them.
package readme

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Example returns the blocks under `## Examples` of README.md in the working directory, and the
// config of the first, as Config does. The test fails where there is another number of blocks than
// want.
func Example(t testing.TB, want int) (blocks []Block, config []byte) {
	t.Helper()
	blocks, err := read("README.md")
	if err != nil || len(blocks) != want {
		t.Fatalf("README.md has %d blocks in its examples, the test runs %d: %v", len(blocks), want, err)
	}
	if config, err = blocks[0].Config(); err != nil {
		t.Fatal(err)
	}
	return blocks, config
}

// Block is a fenced block of text.
type Block struct {
	// Title is what stands behind the fence: ```yaml demo/a.yaml has `yaml demo/a.yaml`.
	Title, Text string
}

// Name returns the title without the language that it begins with.
func (b Block) Name() string {
	_, name, _ := strings.Cut(b.Title, " ")
	return name
}

// read returns the fenced blocks under `## Examples`, in order.
func read(path string) ([]Block, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, examples, ok := strings.Cut(string(content), "\n## Examples\n")
	if !ok {
		return nil, fmt.Errorf("%s has no section `## Examples`", path)
	}
	examples, _, _ = strings.Cut(examples, "\n## ")
	var blocks []Block
	for parts := strings.Split(examples, "```"); len(parts) >= 3; parts = parts[2:] {
		title, text, _ := strings.Cut(parts[1], "\n")
		blocks = append(blocks, Block{Title: strings.TrimSpace(title), Text: text})
	}
	return blocks, nil
}

// Config returns the `config` of the first entry in a block of plugins.yaml, as the JSON that a
// plugin gets.
func (b Block) Config() ([]byte, error) {
	var set struct {
		Plugins []struct{ Config any }
	}
	if err := yaml.Unmarshal([]byte(b.Text), &set); err != nil {
		return nil, err
	}
	if len(set.Plugins) == 0 || set.Plugins[0].Config == nil {
		return nil, nil
	}
	return json.Marshal(set.Plugins[0].Config)
}
