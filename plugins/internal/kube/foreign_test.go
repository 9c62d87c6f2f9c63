package kube

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestAPIServerThatLies: an API server whose address came with a Secret answers what it likes: the
// client goes nowhere else, reads no more than it may, and says why.
func TestAPIServerThatLies(t *testing.T) {
	metadata := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was led elsewhere") }))
	defer metadata.Close()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		server string
		want   string
	}{
		"leads elsewhere": {answer: func(w http.ResponseWriter) {
			w.Header().Set("Location", metadata.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, want: "a redirection (307), which is not followed"},
		"without end": {answer: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			part := []byte(strings.Repeat(" ", 1<<20))
			for range mostAnswer>>20 + 1 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}, want: "too large"},
		"garbage": {answer: func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, want: "serializer for text/html"},
		"of another kind": {answer: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind": "Secret", "apiVersion": "v1", "data": 7}`)
		}, want: "cannot"},
		"denied":              {answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, want: "get pods"},
		"a machine's secrets": {server: "https://169.254.169.254", want: "169.254.169.254 is a link-local address"},
		"the same, mapped":    {server: "https://[::ffff:169.254.169.254]", want: "169.254.169.254 is a link-local address"},
		"of a neighbour":      {server: "https://[fe80::1%25lo]", want: "is a link-local address"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			defer s.Close()
			if c.server == "" {
				c.server = s.URL
			}
			ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
			a := DefaultAccess()
			config, err := a.Other(fmt.Appendf(nil, "{current-context: a, clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], "+
				"users: [{name: u, user: {token: secret}}], contexts: [{name: a, context: {cluster: c, user: u}}]}", c.server, ca), "agent")
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v; it should say %q", err, c.want)
			}
		})
	}
}
