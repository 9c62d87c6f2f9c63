package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

var faults = []kinds.Fault{
	{
		File: "a/b.yaml", Line: 3, Column: 5, Kind: "Gateway", Namespace: "n", Name: "g", Code: "COX2009",
		Field: "spec.servers[0].port.number", Message: "no port", Hint: "write one",
	},
	{File: "c.yaml", Line: 1, Column: 1, Code: "IST0101", Severity: finding.Info, Message: "not found"},
}

func explain(id string) (finding.Code, bool) {
	return finding.Code{ID: id, Title: "No port number", Explanation: "Ports have numbers."}, id == "COX2009"
}

func TestWrite(t *testing.T) {
	for format, want := range map[string][]string{
		"text": {"a/b.yaml:3:5: Gateway n/g: spec.servers[0].port.number: no port; write one (COX2009)\n", "c.yaml:1:1: info: not found (IST0101)\n"},
		"json": {`"code": "COX2009"`, `"severity": "info"`},
		"sarif": {
			`"ruleId": "COX2009"`, `"level": "error"`, `"level": "note"`, `"uri": "a/b.yaml"`, `"startLine": 3`,
			`"text": "Ports have numbers."`, "analysis/ist0101/",
		},
	} {
		var out bytes.Buffer
		if err := Write(&out, format, faults, explain); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s has no %q:\n%s", format, part, out.String())
			}
		}
		if format != "text" && !json.Valid(out.Bytes()) {
			t.Errorf("%s is no JSON", format)
		}
	}
	if Write(&bytes.Buffer{}, "xml", nil, explain) == nil {
		t.Error("xml is no format")
	}
}

// Where nothing was found, readers get an empty list rather than null.
func TestNothing(t *testing.T) {
	for format, want := range map[string]string{"text": "", "json": "[]\n", "sarif": `"results": []`} {
		var out bytes.Buffer
		if err := Write(&out, format, nil, explain); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q, %v", format, out.String(), err)
		}
	}
}
