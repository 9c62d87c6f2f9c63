package render

import (
	"strconv"
	"strings"
)

// Annotations by which OpenShift gives a namespace users and groups.
// Source: OpenShift, "Managing security context constraints", "About pre-allocated security context
// constraints values".
const usersNote, groupsNote = "openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.supplemental-groups"

// OpenShift reports whether the values say that the cluster is one (global.platform).
func (s *Settings) OpenShift() bool { return s.values.text("global", "platform") == "openshift" }

// HasUsers reports whether a namespace with these annotations has been given users or groups.
func HasUsers(annotations map[string]string) bool {
	return annotations[usersNote] != "" || annotations[groupsNote] != ""
}

// Users are the user and the group of proxies in a namespace with these annotations: the last of
// its users, and of its first block of groups. Without groups its users count for both; 0: there
// are none, or they can't be read.
func Users(annotations map[string]string) (user, group int64) {
	user, _ = last(annotations[usersNote])
	text, ok := annotations[groupsNote]
	if !ok {
		text = annotations[usersNote]
	}
	for i, block := range strings.Split(text, ",") {
		is, ok := last(block)
		if !ok {
			return user, 0
		}
		if i == 0 {
			group = is
		}
	}
	return user, group
}

// last is the last number of a block, FIRST/SIZE or FIRST-LAST.
func last(block string) (int64, bool) {
	first, size, slash := strings.Cut(block, "/")
	if !slash {
		first, size, _ = strings.Cut(block, "-")
	}
	a, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return 0, false
	}
	b, err := strconv.ParseUint(size, 10, 32)
	if err != nil {
		return 0, false
	}
	if slash {
		b += a - 1
	}
	return int64(uint32(b)), true
}
