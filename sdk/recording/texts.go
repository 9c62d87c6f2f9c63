package recording

import (
	"encoding/json"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

const (
	// shortest text that is looked for in others: shorter ones are in too many by chance.
	shortest = 6
	// mostTexts is how many are remembered.
	mostTexts = 1000
)

// texts are what a plugin may know and must not be read in what it says.
type texts []string

// config remembers the texts of a config.
func (t *texts) config(text []byte) {
	var v any
	if json.Unmarshal(text, &v) == nil {
		t.value(v)
	}
}

func (t *texts) value(v any) {
	switch v := v.(type) {
	case string:
		t.add(v)
	case []any:
		for _, e := range v {
			t.value(e)
		}
	case map[string]any:
		for _, e := range v {
			t.value(e)
		}
	}
}

// headers remembers credentials: the header and its last word, which is the token.
func (t *texts) headers(h map[string]string) {
	for _, value := range h {
		t.add(value)
		t.add(value[strings.LastIndexByte(value, ' ')+1:])
	}
}

func (t *texts) add(text string) {
	if len(text) < shortest {
		return
	}
	if len(*t) == mostTexts {
		*t = (*t)[1:]
	}
	*t = append(*t, text)
}

// out takes all of them out of a text.
func (t *texts) out(text string) string {
	for _, secret := range *t {
		text = strings.ReplaceAll(text, secret, Masked)
	}
	return redact.Text(text)
}
