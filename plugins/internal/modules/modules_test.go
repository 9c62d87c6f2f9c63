package modules

import "testing"

// Rows that say nothing, or lie, are errors.
func TestParse(t *testing.T) {
	code := []byte("\x00asm")
	sum := Sum(code)
	if r, err := Parse(BytesKey(sum), code); err != nil || string(r.Bytes) != string(code) {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := Parse("WasmPlugin/a/b", Module{SHA256: sum, Spec: []byte("x")}.Encode()); err != nil || r.Module.SHA256 != sum {
		t.Errorf("%v, %v", r, err)
	}
	for key, payload := range map[string]string{
		BytesKey(sum): "\x00asm!", "WasmPlugin/a/b": `{"sha256":"../x"}`, "WasmPlugin/a/c": "", "WasmPlugin/a/d": "{}",
	} {
		if _, err := Parse(key, []byte(payload)); err == nil {
			t.Errorf("%s: %q is taken", key, payload)
		}
	}
}
