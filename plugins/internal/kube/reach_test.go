package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// logged is a Publisher whose log is kept.
type logged struct {
	sdk.Publisher
	lines []string
}

func (l *logged) Log(_ sdk.Level, text string, args ...any) {
	l.lines = append(l.lines, text+fmt.Sprint(args...))
}

// TestReport: an API server that isn't there is named with the reason, once.
func TestReport(t *testing.T) {
	const address = "127.0.0.1:1"
	a := DefaultAccess()
	a.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "https://%s"}}], users: [{name: a, user: {token: a-secret}}],
contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}`, address)
	if err := os.WriteFile(a.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := a.Client("test")
	if err != nil {
		t.Fatal(err)
	}
	out := &logged{}
	a.Report(t.Context(), out)
	for range 3 {
		if err := client.Core.Get().Resource("pods").Do(t.Context()).Into(&corev1.PodList{}); err == nil {
			t.Fatal("it answers")
		}
	}
	if len(out.lines) != 1 || !strings.Contains(out.lines[0], address) ||
		!strings.Contains(out.lines[0], "connection refused") || strings.Contains(out.lines[0], "a-secret") {
		t.Errorf("%q", out.lines)
	}
}
