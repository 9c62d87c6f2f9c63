package plugintest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// planted is a secret that the suite puts into rows.
const planted = "hunter2-hunter2-hunter2-hunter2-hunter2"

// plant returns rows that hold the secret, in forms in which a plugin may read it and in such as it
// can't: new ones, and others in the place of the suite's own.
func plant(own []*sdk.Row) []*sdk.Row {
	in64 := base64.StdEncoding.EncodeToString([]byte(planted))
	payloads := []string{
		planted,
		`{"data": {"tls.crt": "` + in64 + `", "tls.key": "` + in64 + `"}}`,
		`{"data": {"tls.crt": "` + planted + `", "tls.key": "` + planted + `"}}`,
		`{"data": "` + planted + `"}`,
	}
	keys := []string{"test/planted", "planted"}
	for _, row := range own {
		keys = append(keys, row.Key)
	}
	var rows []*sdk.Row
	for _, key := range keys {
		for i, payload := range payloads {
			row := &sdk.Row{Key: key, Payload: []byte(payload)}
			if i > 0 {
				row.Key += fmt.Sprint("-", i)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// secretsInWords: nothing of rows that are secrets is in a log, a fault, what is said of a view, a
// refusal, a row of another table, or a resource of a type that isn't sensitive.
func secretsInWords(k *kit) {
	h := k.start()
	r := h.Ready()
	var secret recording.SecretTables
	secret.Declare(r)
	var with []Rows
	for _, read := range r.Reads {
		if secret.Has(read.Table) {
			with = append(with, Rows{Table: read.Table, Upserts: plant(k.Rows[read.Table])})
		}
	}
	if len(with) == 0 {
		k.skip("the plugin reads no table of secrets")
	}
	k.feed(h, 3)
	said := words(k, h, &secret)
	h.Commit(with...)
	maps.Copy(said, words(k, h, &secret))
	for where, text := range said {
		if strings.Contains(text, planted) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(planted))) {
			h.failed("%s has a secret that is in a row of the table %s", where, with[0].Table)
		}
	}
}

// words is all that a plugin has said that is shown.
func words(k *kit, h *Harness, secret *recording.SecretTables) map[string]string {
	said := map[string]string{}
	if r := h.Ready(); r.Kind.Generates() {
		for typeURL, view := range h.Placement(k.attachOne(h)) {
			h.Want(typeURL, view, append([]string{"planted", "test/planted"}, k.Names[typeURL]...)...)
			if recording.SensitiveType(r, typeURL) {
				continue
			}
			for name, body := range h.View(view) {
				said[fmt.Sprintf("%s %q", last(typeURL), name)] = string(body)
			}
		}
	}
	h.mu.Lock()
	for table, rows := range h.rows {
		for key, row := range rows {
			if !secret.Has(table) {
				said["the row "+key+" of "+table] = string(row.AppendTo(nil))
			}
		}
	}
	for number, v := range h.views {
		said[fmt.Sprintf("what is said of view %d", number)] = fmt.Sprint(v.label, v.facts)
	}
	for connection, why := range h.refusal {
		said[fmt.Sprintf("the refusal of connection %d", connection)] = why
	}
	for _, f := range h.faults {
		said["the fault "+f.What] = f.What + f.Reason
	}
	h.mu.Unlock()
	said["the log"] = strings.Join(append(h.Logs(), h.stderr.last()...), "\n")
	return said
}
