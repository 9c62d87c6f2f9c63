package budget

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Level of a process's overload.
type Level int

const (
	// Calm: all are served.
	Calm Level = iota
	// Shedding: no stream may begin; those that there are are served.
	Shedding
	// Ending: the heaviest streams are ended, too.
	Ending
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"calm", "shedding", "ending"}[l] }

// Shares of the limit, in percent, from which on a level is entered, and below which it is left at
// once: a value near one of them doesn't make it flutter.
var enters, leaves = [...]uint64{Shedding: 80, Ending: 90}, [...]uint64{Shedding: 70, Ending: 85}

// Rest is how long less has to be used than what a level is entered from for it to be left, where
// it isn't at once: what a process needs in calm may be little less, and then it would never be.
const Rest = 5 * time.Second

// Next returns the level after one at which so much memory is used; rested says that for a while it
// has been less than what the level is entered from. A limit of 0 is none.
func (l Level) Next(used, limit uint64, rested bool) Level {
	if limit == 0 {
		return Calm
	}
	share := uint64(float64(used) / float64(limit) * 100)
	for l < Ending && share >= enters[l+1] {
		l++
	}
	for l > Calm && (share < leaves[l] || rested && share < enters[l]) {
		l--
	}
	return l
}

// Excess returns by how much more memory is used than leaves room for clients: it is let go of
// before any of them is refused.
func Excess(used, limit uint64) uint64 {
	room := limit / 100 * leaves[Shedding]
	if limit == 0 || used < room {
		return 0
	}
	return max(1, used-room)
}

// Room returns a limit that leaves as much memory to clients as the process uses without any, and
// whether that is more than the limit is: a process that is near it by itself serves few, or
// nobody.
func Room(used, limit uint64) (enough uint64, short bool) {
	return 2 * used, limit > 0 && used > limit/2
}

// Refuses returns how much memory is used when no stream may begin any more.
func Refuses(limit uint64) uint64 { return limit / 100 * enters[Shedding] }

// Short says why a stream may not begin or go on: the process runs short of memory.
func Short(used, limit uint64) error {
	return &Refusal{Limit: "memoryLimit", Code: codes.Unavailable, Text: fmt.Sprintf(
		"the control plane runs short of memory: it uses %d MiB of memoryLimit, %d MiB: connect to another replica, or later, or give it more",
		used>>20, limit>>20)}
}

// Heavy reports whether the end of a stream that weighs so much makes a difference: a thousandth of
// the limit.
func Heavy(weight int64, limit uint64) bool { return uint64(weight) >= limit/1000 }

// Heaviest chooses which streams end next by what each weighs: one in twenty at most, the heaviest,
// and none that isn't heavy. The weights are sorted, the heaviest first; it returns how many of
// them are to end.
func Heaviest(weights []int64, limit uint64) (many int) {
	most := (len(weights) + 19) / 20
	for _, w := range weights {
		if many == most || !Heavy(w, limit) {
			break
		}
		many++
	}
	return many
}
