package state

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
)

// A plugin's line can't say that it is another's, another level's or the audit's, nor have a key
// twice.
func TestFieldsOfALine(t *testing.T) {
	var out bytes.Buffer
	r := &Roster{log: slog.New(slog.NewJSONHandler(&out, nil))}
	s := &Session{Plugin: &Plugin{Expected: Expected{Name: "rogue"}}, Lines: Lines{Limit: rate.NewLimiter(rate.Inf, 1)}}
	forged := map[string]string{"": "x", "host": "a.example", "audit": "true", "by": "root"}
	for _, k := range []string{"plugin", "msg", "level", "time", "source", "component", "standby", "stream"} {
		forged[k] = "forged"
	}
	r.HandleLog(s, &pb.Log{Text: "line\nplugin=other", Fields: forged})
	keys := map[string]any{}
	for d := json.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		if _, delim := token.(json.Delim); delim {
			continue
		}
		if keys[token.(string)] != nil {
			t.Errorf("%s is there twice: %s", token, out.String())
		}
		var value any
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		keys[token.(string)] = value
	}
	if keys["plugin"] != "rogue" || keys["msg"] != "line\nplugin=other" || keys["level"] != "INFO" ||
		keys["host"] != "a.example" || keys["audit"] != nil || keys["by"] != nil {
		t.Errorf("got %s", out.String())
	}
	if bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("more than a line: %q", out.String())
	}
}
