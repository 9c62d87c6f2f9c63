package render

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCustomMounts: an annotation has mounts by their names, or as a list whose values say them.
func TestCustomMounts(t *testing.T) {
	for text, want := range map[string][]string{
		`{"b": {"mountPath": "/b"}, "a": {"mountPath": "/a"}}`:                  {"a /a", "b /b"},
		` [{"name": "b", "mountPath": "/b"}, {"name": "a", "mountPath": "/a"}]`: {"b /b", "a /a"},
		`[]`:                    nil,
		`{}`:                    nil,
		`[{"mountPath": "/a"}]`: {"refused"},
		`[{"name": "a"}, null]`: {"refused"},
		`["a"]`:                 {"refused"},
		`[{"name": "a"`:         {"refused"},
		`"a"`:                   {"refused"},
		`[{"name": 1}]`:         {"refused"},
	} {
		var got []string
		f := &form{Data: &Data{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"mounts": text}}}}
		custom(f, "mounts", func(name string, m corev1.VolumeMount) { got = append(got, fmt.Sprint(name, " ", m.MountPath)) })
		if f.err != nil {
			got = []string{"refused"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v (%v), want %v", text, got, f.err, want)
		}
	}
}
