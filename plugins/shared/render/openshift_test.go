package render_test

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
)

// TestUsers: the last user, and the last group of the first block, of those of a namespace.
func TestUsers(t *testing.T) {
	const users, groups = "openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.supplemental-groups"
	for _, c := range []struct {
		notes       map[string]string
		user, group int64
	}{
		{nil, 0, 0},
		{map[string]string{users: "1000620000/10000"}, 1000629999, 1000629999},
		{map[string]string{users: "5-9", groups: "100-200,300/2"}, 9, 200},
		{map[string]string{users: "5-9", groups: "100-200,x"}, 9, 0},
		{map[string]string{users: "5-9", groups: ""}, 9, 0},
		{map[string]string{users: "all"}, 0, 0},
		{map[string]string{groups: "7/1"}, 0, 7},
		{map[string]string{users: "5-99999999999"}, 0, 0},
	} {
		if user, group := render.Users(c.notes); user != c.user || group != c.group {
			t.Errorf("%v: %d, %d", c.notes, user, group)
		}
	}
}
