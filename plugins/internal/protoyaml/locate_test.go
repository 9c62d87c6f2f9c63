package protoyaml

import (
	"fmt"
	"testing"
)

func TestLocate(t *testing.T) {
	const text = `spec:
  hosts: [a, b]
  http:
  - &first
    match_all: 1
    route:
    - weight: 10
  - *first
  selector:
    matchLabels:
      app.kubernetes.io/name: x
      app: y
`
	root, fault := Split([]byte(text))[0].Parse()
	if fault != nil {
		t.Fatal(fault)
	}
	for _, c := range []struct{ path, want string }{
		{"", "1:1"},
		{"spec.hosts[1]", "2:14"},
		{"spec.hosts[7]", "2:10"},
		{"spec.http[0].route[0].weight", "7:15"},
		{"spec.http[1].route[0].weight", "7:15"},
		{"spec.http[0].matchAll", "5:16"},
		{"spec.http[0].route[0].destination.host", "7:7"},
		{`spec.selector.matchLabels["app.kubernetes.io/name"]`, "11:31"},
		{"spec.selector.matchLabels[app.kubernetes.io/name]", "11:31"},
		{"spec.selector.matchLabels.app", "12:12"},
		{"metadata.name", "1:1"},
		{"spec.hosts[x].[", "2:10"},
		{`spec.selector["a`, "10:5"},
	} {
		at := Locate(root, c.path)
		if got := fmt.Sprintf("%d:%d", at.Line, at.Column); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}
