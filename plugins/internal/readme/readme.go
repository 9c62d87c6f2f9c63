// Package readme takes the examples out of a plugin's README.md, so that a test can run them.
package readme

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Block is a fenced block of text.
type Block struct {
	// Title is what stands behind the fence: ```yaml demo/a.yaml has `yaml demo/a.yaml`.
	Title, Text string
}

// Blocks returns the fenced blocks under `## Examples`, in order.
func Blocks(path string) ([]Block, error) {
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

// Config returns the `config` of the first entry in a block of plugins.yaml, as the JSON that a plugin gets.
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
