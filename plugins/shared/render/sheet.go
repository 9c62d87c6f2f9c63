package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// sheet is what a template writes, to be laid over pods. It doesn't change.
type sheet struct {
	// tree is it as JSON has it; nil: nothing is to be laid over.
	tree map[string]any
	// pod is it laid over an empty pod.
	pod *corev1.Pod
	// plain is whether it has fields of pods alone, in the spelling that they have.
	plain bool
}

// Bounds of sheets that are kept, so that pods that are alike, as those of one Deployment are, have
// what the template writes read once: how many, of how many bytes each, and for how long.
const (
	mostSheets   = 256
	largestSheet = 16 << 10
	sheetsLast   = 10 * time.Minute
)

// sheets are those that were read before, by their texts.
type sheets struct{ by *cache.LRUExpireCache }

func newSheets() sheets { return sheets{cache.NewLRUExpireCache(mostSheets)} }

// read reads what a template has written in YAML.
func (s sheets) read(text []byte) (*sheet, error) {
	if len(text) > largestSheet {
		return readYAML(text)
	}
	key := string(text)
	if is, ok := s.by.Get(key); ok {
		return is.(*sheet), nil
	}
	is, err := readYAML(text)
	if err == nil {
		s.by.Add(key, is, sheetsLast)
	}
	return is, err
}

func readYAML(text []byte) (*sheet, error) {
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("what it writes is no YAML: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return &sheet{pod: &corev1.Pod{}}, nil
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("what it writes can't be laid over a pod: %w", err)
	}
	return newSheet(tree)
}

func newSheet(tree map[string]any) (s *sheet, err error) {
	s = &sheet{tree: tree}
	s.plain = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, &corev1.Pod{}, true) == nil
	s.pod, err = s.over(&corev1.Pod{})
	return s, err
}

// over lays it over a pod, by the rules of a strategic merge patch: lists of things with names are
// merged by name. The pod stays as it is.
func (s *sheet) over(pod *corev1.Pod) (*corev1.Pod, error) {
	if s.tree == nil {
		return pod, nil
	}
	under, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(under, runtime.DeepCopyJSON(s.tree), corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("what it writes can't be laid over a pod: %w", err)
	}
	out := &corev1.Pod{}
	if s.plain {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(merged, out)
	} else if text, failed := json.Marshal(merged); failed == nil {
		err = json.Unmarshal(text, out) // fields in another spelling count, too
	} else {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("what it writes makes no pod: %w", err)
	}
	return out, nil
}
