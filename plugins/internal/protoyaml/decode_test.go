package protoyaml

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

func root(t testing.TB, text string) *yaml.Node {
	t.Helper()
	n, fault := Chunk{Text: []byte(text)}.Parse()
	if fault != nil {
		t.Fatal(fault)
	}
	return n
}

func TestDecodeReadsWhatProtojsonReads(t *testing.T) {
	for _, c := range []struct {
		yaml, json string
		into       proto.Message
	}{
		{"1.5s", `"1.5s"`, &durationpb.Duration{}},
		{"1m", `"60s"`, &durationpb.Duration{}},
		{"-0.5s", `"-0.5s"`, &durationpb.Duration{}},
		{"315576000000s", `"315576000000s"`, &durationpb.Duration{}},
		{"2026-01-02T03:04:05.006Z", `"2026-01-02T03:04:05.006Z"`, &timestamppb.Timestamp{}},
		{"a,bC", `"a,bC"`, &fieldmaskpb.FieldMask{}},
		{"yes", `true`, &wrapperspb.BoolValue{}},
		{"0x10", `16`, &wrapperspb.UInt32Value{}},
		{"1_000", `1000`, &wrapperspb.Int64Value{}},
		{"-7", `-7`, &wrapperspb.Int32Value{}},
		{`"9223372036854775807"`, `"9223372036854775807"`, &wrapperspb.Int64Value{}},
		{`18446744073709551615`, `"18446744073709551615"`, &wrapperspb.UInt64Value{}},
		{"1e3", `1e3`, &wrapperspb.Int32Value{}},
		{"5.0", `5.0`, &wrapperspb.UInt32Value{}},
		{"0.1", `0.1`, &wrapperspb.FloatValue{}},
		{".inf", `"Infinity"`, &wrapperspb.DoubleValue{}},
		{`"-Infinity"`, `"-Infinity"`, &wrapperspb.DoubleValue{}},
		{"aGk_", `"aGk/"`, &wrapperspb.BytesValue{}},
		{"aGk=", `"aGk="`, &wrapperspb.BytesValue{}},
		{
			"{a: [1, x, null, {b: true}], c: on, d: 2001-01-01, e: '5', f: ~}",
			`{"a":[1,"x",null,{"b":true}],"c":true,"d":"2001-01-01","e":"5","f":null}`, &structpb.Struct{},
		},
		{"[1, 0o17, 0b11]", "[1, 15, 3]", &structpb.ListValue{}},
		{"null", "null", &structpb.Value{}},
		{
			`{"@type": type.googleapis.com/google.protobuf.FieldOptions, deprecated: true}`,
			`{"@type": "type.googleapis.com/google.protobuf.FieldOptions", "deprecated": true}`, &anypb.Any{},
		},
		{
			`{"@type": type.googleapis.com/google.protobuf.Duration, value: 1s}`,
			`{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1s"}`, &anypb.Any{},
		},
		{
			"{label: LABEL_REPEATED, type: 9, json_name: x, defaultValue: 'on'}",
			`{"label": "LABEL_REPEATED", "type": 9, "jsonName": "x", "defaultValue": "on"}`,
			&descriptorpb.FieldDescriptorProto{},
		},
	} {
		want := c.into.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(c.json), want); err != nil {
			t.Fatalf("%s: %v", c.json, err)
		}
		if faults := Decode(root(t, c.yaml), "", c.into); faults != nil || !proto.Equal(c.into, want) {
			t.Errorf("%s: got %v %v, want %v", c.yaml, c.into, faults, want)
		}
	}
}

// TestYAML11: words that are booleans to Kubernetes' tools are no strings, and keys are what they
// are to them; entries of maps that are null are left out, and said.
func TestYAML11(t *testing.T) {
	for _, word := range []string{"yes", "On", "n", "OFF"} {
		got := &wrapperspb.StringValue{}
		if faults := Decode(root(t, word), "", got); len(faults) != 1 || !strings.Contains(faults[0].Reason, "put it in quotes") {
			t.Errorf("%s: %q, %v", word, got.Value, faults)
		}
		if faults := Decode(root(t, "'"+word+"'"), "", got); len(faults) != 0 || got.Value != word {
			t.Errorf("'%s': %q, %v", word, got.Value, faults)
		}
	}
	e := &networking.WorkloadEntry{}
	faults := Decode(root(t, "{address: a, labels: {on: x, 1.0: v, 0x10: z, gone: null, \"no\": w}}"), "", e)
	want := map[string]string{"true": "x", "1": "v", "16": "z", "no": "w"}
	if !maps.Equal(e.Labels, want) {
		t.Errorf("labels %v, want %v", e.Labels, want)
	}
	if len(faults) != 1 || faults[0].Code != CodeNull || !faults[0].Foreign || faults[0].Field != `labels["gone"]` {
		t.Errorf("faults: %v", faults)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		yaml, want string
		into       proto.Message
	}{
		{"5", "expected a duration", &durationpb.Duration{}},
		{"5 s", "expected a duration", &durationpb.Duration{}},
		{"yesterday", "expected a time", &timestamppb.Timestamp{}},
		{"maybe", "expected true or false", &wrapperspb.BoolValue{}},
		{`"true"`, "expected true or false", &wrapperspb.BoolValue{}},
		{"1.5", "expected a whole number", &wrapperspb.Int32Value{}},
		{"-1", "from 0 to 4294967295", &wrapperspb.UInt32Value{}},
		{"2147483648", "expected a whole number", &wrapperspb.Int32Value{}},
		{`"0x10"`, "expected a whole number", &wrapperspb.Int32Value{}},
		{"1e39", "expected a number", &wrapperspb.FloatValue{}},
		{"'%%'", "expected a base64", &wrapperspb.BytesValue{}},
		{"[1]", "expected a string, got a list", &wrapperspb.StringValue{}},
		{"!mine x", "tag !mine", &wrapperspb.StringValue{}},
		{"a", "expected a mapping", &structpb.Struct{}},
		{"{a: !mine x}", "a: expected a string, number", &structpb.Struct{}},
		{"{a: 1}", `"@type"`, &anypb.Any{}},
		{"{'@type': x.y/Z}", `unknown type "x.y/Z"`, &anypb.Any{}},
		{"{number: 1, type: TYPE_STRNG}", "did you mean TYPE_STRING?", &descriptorpb.FieldDescriptorProto{}},
		{"{type: 99}", "expected one of", &descriptorpb.FieldDescriptorProto{}},
	} {
		faults := Decode(root(t, c.yaml), "", c.into)
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.yaml, faults, c.want)
		}
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	text := "base: &b {a: 1, b: 2}\nother: {<<: *b, b: 3}\nlist: {<<: [*b, {c: 4, a: 9}]}\nsame: *b\n"
	var got structpb.Struct
	if faults := Decode(root(t, text), "", &got); faults != nil {
		t.Fatal(faults)
	}
	want := map[string]any{
		"base": map[string]any{"a": 1.0, "b": 2.0}, "other": map[string]any{"a": 1.0, "b": 3.0},
		"list": map[string]any{"a": 1.0, "b": 2.0, "c": 4.0}, "same": map[string]any{"a": 1.0, "b": 2.0},
	}
	if fmt.Sprint(got.AsMap()) != fmt.Sprint(want) {
		t.Errorf("got %v", got.AsMap())
	}
}

// Texts that grow when they are read, or have no end, are refused in good time.
func TestHostileTexts(t *testing.T) {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	merges := "a0: &a0 {x0: 1}\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
		merges += fmt.Sprintf("a%d: &a%d {k: {<<: *a%d}, l: {<<: *a%d}, m: {<<: *a%d}, n: {<<: *a%d}, o: {<<: *a%d}, <<: [%s]}\n",
			i, i, i-1, i-1, i-1, i-1, i-1, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 90))
	}
	for name, text := range map[string]string{
		"laughs": laughs, "merges": merges, "self": "a: &a [*a]", "self merge": "a: &a {<<: *a, b: 1}",
		"deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		var s structpb.Value
		if faults := Decode(root(t, text), "", &s); len(faults) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A document of more entries than can be read in bounded memory is not read; the fault names the
// line where it grows too large.
func TestTooManyEntries(t *testing.T) {
	for name, text := range map[string]string{
		"flow":  "a: 1\nb: [" + strings.Repeat("x,", maxMarks) + "x]",
		"block": "a: 1\nb:" + strings.Repeat("\n- x", maxMarks/2), "keys": strings.Repeat("? ", maxMarks+1),
	} {
		node, fault := Chunk{Before: 7, Text: []byte(text)}.Parse()
		if node != nil || fault == nil || fault.Code != CodeTooLarge {
			t.Errorf("%s: %v", name, fault)
		} else if name == "flow" && fault.Line != 9 {
			t.Errorf("%s: in line %d", name, fault.Line)
		}
	}
	if _, fault := (Chunk{Text: []byte("[" + strings.Repeat("x,", maxMarks-2) + "x]")}).Parse(); fault != nil {
		t.Error(fault)
	}
}

func TestFieldsAreReplacedNotMerged(t *testing.T) {
	m := &mesh.MeshConfig{IngressClass: "kept", LocalityLbSetting: nil, TrustDomainAliases: []string{"a"}}
	if faults := Decode(root(t, "trustDomainAliases: [b]\ningressService: null\n"), "", m); faults != nil {
		t.Fatal(faults)
	}
	if m.IngressClass != "kept" || len(m.TrustDomainAliases) != 1 || m.TrustDomainAliases[0] != "b" {
		t.Errorf("got %v", m)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"", ""},
		{"# only\n", ""},
		{"a: 1", "0:a: 1"},
		{"---\n---\na: 1\n---\n# c\n---\nb: 2\n", "1:---\na: 1\n|5:---\nb: 2\n"},
		{"a: 1\n...\n---\nb: 2\n", "0:a: 1\n...\n|2:---\nb: 2\n"},
		{"%YAML 1.1\n---\na: 1\n", "0:%YAML 1.1\n---\na: 1\n"},
		{"--- {a: 1}\r\n---\r\nb: 1\r\n", "0:--- {a: 1}\r\n|1:---\r\nb: 1\r\n"},
		{"a: |\n  x\n  ---\n  y\n", "0:a: |\n  x\n  ---\n  y\n"},
	} {
		var parts []string
		for _, chunk := range Split([]byte(c.text)) {
			parts = append(parts, fmt.Sprintf("%d:%s", chunk.Before, chunk.Text))
		}
		if got := strings.Join(parts, "|"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for wrong, want := range map[string]string{"htpt": "http", "Hosts": "hosts", "zzz": "", "gatways": "gateways", "h": ""} {
		if got := nearest.Name(wrong, []string{"http", "hosts", "gateways"}); got != want {
			t.Errorf("%s: got %q, want %q", wrong, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("a: &a {b: *a}")
	f.Add("connectTimeout: 1s\ndefaultConfig: {proxyMetadata: {A: b}}\n---\n? [a]\n: b")
	f.Fuzz(func(t *testing.T, text string) {
		for _, chunk := range Split([]byte(text)) {
			agree(t, chunk.Text)
			n, fault := chunk.Parse()
			if fault != nil || n == nil {
				continue
			}
			Decode(n, "", &mesh.MeshConfig{})
			Decode(n, "", &structpb.Value{})
		}
	})
}

// A key that stands twice is found among few and among many, and the first one counts; what a merge
// key brings takes nobody's place.
func TestKeysTwice(t *testing.T) {
	for _, keys := range []int{1, few, few + 1, 3 * few} {
		for _, twice := range []int{0, keys - 1} {
			var text strings.Builder
			text.WriteString("base: &base {more: 1, k0: base}\nall:\n")
			for i := range keys {
				fmt.Fprintf(&text, "  k%d: %d\n", i, i)
			}
			fmt.Fprintf(&text, "  k%d: again\n  <<: *base\n", twice)
			root, fault := Chunk{Text: []byte(text.String())}.Parse()
			if fault != nil {
				t.Fatal(fault)
			}
			pairs, faults := Pairs(Child(root, "all"))
			want := fmt.Sprintf(`"k%d" is given twice, first in line %d`, twice, twice+3)
			if len(faults) != 1 || faults[0].Reason != want || faults[0].Line != keys+3 {
				t.Errorf("%d keys, number %d twice: %v, not in line %d: %s", keys, twice, faults, keys+3, want)
			}
			if len(pairs) != keys+1 || pairs[twice].Value.Value != strconv.Itoa(twice) || pairs[keys].Key.Value != "more" {
				t.Errorf("%d keys, number %d twice: %v", keys, twice, pairs)
			}
		}
	}
}
