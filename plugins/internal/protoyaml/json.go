package protoyaml

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// JSON returns what a node has as a Kubernetes API server has it (maps, lists, strings, booleans,
// int64, float64 and nil), and its text as JSON.
func JSON(n *yaml.Node) (value any, text []byte, err error) {
	err = n.Decode(&value)
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err == nil {
		err = kubejson.Unmarshal(text, &value)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("can't be written as JSON: %w", err)
	}
	return value, text, nil
}
