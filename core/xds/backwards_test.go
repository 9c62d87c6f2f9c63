package xds

import "testing"

// TestNeverBackwards: a turn that comes late with what was served before sends nothing, whichever
// kind of turn it is; of another epoch it may have any number.
func TestNeverBackwards(t *testing.T) {
	for name, turn := range map[string]func(*conversation, Served){
		"push": func(c *conversation, s Served) {
			out, _ := c.machine.serve(c.now, s)
			c.pending = append(c.pending, out...)
		},
		"endpoints": func(c *conversation, s Served) { c.pending = append(c.pending, c.machine.ahead(s)...) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newConversation(t, 0)
			expect := func(want ...string) {
				t.Helper()
				if err := c.server(want); err != nil {
					t.Fatalf("want %v, but %v", want, err)
				}
			}
			c.served([]string{"eds", "a=1"})
			c.client(eds, []string{"a"})
			expect("eds", "a=1")
			c.client(eds, []string{"a", "ack"})
			c.served([]string{"eds", "a=2"})
			old := c.connection.Pull()
			c.served([]string{"eds", "a=3"})
			turn(c, c.connection.Pull())
			expect("eds", "a=3")
			c.client(eds, []string{"a", "ack"})
			turn(c, old)
			expect("nothing")
			old.Epoch++
			turn(c, old)
			expect("eds", "a=2")
		})
	}
}
